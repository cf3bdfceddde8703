"""The public calls as a typed program makes them; mypy reads this file, and nothing runs it."""

from __future__ import annotations

import shardlint
from shardlint.findings import Finding, Report, Severity
from shardlint.layout import Layout, Rank

CONFIG: dict[str, object] = {"model_type": "llama", "num_attention_heads": 32}


def findings() -> list[tuple[str, Severity, str, int]]:
    report: Report = shardlint.check_command(
        ["vllm", "serve", "model", "-tp", "6"],
        config=CONFIG,
        side_files={"hf_quant_config.json": {}},
        env={"VLLM_PP_LAYER_PARTITION": "16,16"},
        gpus_per_node=8,
        nodes=2,
        gpu="H100",
        engine_version="0.33.0",
    )
    found: tuple[Finding, ...] = report.findings
    return [(finding.code, finding.severity, finding.path, finding.line) for finding in found]


def weights() -> list[int | None]:
    layout: Layout = shardlint.lay_out("vllm serve model -tp 8", config=CONFIG)
    ranks: tuple[Rank, ...] = layout.ranks
    return [rank.weight_bytes for rank in ranks]
