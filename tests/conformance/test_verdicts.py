"""shardlint gives the verdict that vLLM itself gave, on both sides of the edge of each condition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardlint import check_command

HERE = Path(__file__).parent
MODELS: dict[str, dict[str, Any]] = json.loads((HERE / "models.json").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
]


def name_of(row: dict[str, Any]) -> str:
    env = [f"{name}={value}" for name, value in row.get("env", {}).items()]
    return " ".join([*env, row["model"], *row["args"]])


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_verdict_is_that_of_vllm(row: dict[str, Any]) -> None:
    report = check_command(
        ["vllm", "serve", "model", *row["args"]],
        config=MODELS[row["model"]],
        env=row.get("env"),
        gpus_per_node=row["gpus"],
        gpu="H100-80GB",
        engine_version=row["vllm"],
    )
    refusals = [finding.message for finding in report.findings if finding.effect == "refuses-at-start"]
    assert bool(refusals) == (row["verdict"] == "reject"), refusals or row["message"]
