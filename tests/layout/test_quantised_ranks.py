"""Ranks of quantised checkpoints that vLLM 0.33.0 itself built, to the byte.

Each line of `quantised_ranks_of_vllm.jsonl` holds the numbers of a config, the tensor parallel size, the compute
capability of the card and the bytes of the parameters of the first rank, recorded from vLLM's own classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from layout_models import VLLM, geometry

from shardlint.architectures import rows_of
from shardlint.facts import Accelerator
from shardlint.layout import Sizes, lay_out

LINES = Path(__file__).with_name("quantised_ranks_of_vllm.jsonl").read_text().splitlines()
CASES = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['case']}-tp{case['tp']}-{case['gpu']}")
def test_every_recorded_rank_is_exact(case: dict[str, Any]) -> None:
    model = geometry(case["config"])
    rows = rows_of(model, quantization=case.get("quantization"))
    sizes = Sizes(case["tp"], enable_expert_parallel=case.get("ep", False))
    layout = lay_out(sizes, model, VLLM, rows=rows, gpu=card(case["gpu"]))
    assert layout.unknown is None
    assert layout.refused is None
    assert layout.ranks[0].weight_bytes == case["bytes"]


def card(capability: str) -> Accelerator:
    return Accelerator("", "a card", "NVIDIA", None, None, None, capability)
