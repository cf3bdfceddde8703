"""The rows of a model have as many elements as its classes make parameters.

Each line of `elements_of_checkpoints.jsonl` holds the numbers of a config and the elements that transformers' own class
makes of it, tied weights once: mostly for families without a recorded rank of vLLM.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardlint.architectures import Row, Rows, rows_of
from shardlint.facts.geometry import read

LINES = Path(__file__).with_name("elements_of_checkpoints.jsonl").read_text().splitlines()
CASES = [json.loads(line) for line in LINES]


def elements(row: Row) -> int:
    outputs = sum(out.count * out.unit for out in row.outs)
    of_one = outputs * row.contraction.count * row.contraction.unit + outputs * row.bias
    return of_one * row.experts.count * row.times * (len(row.layers) if row.stage == "layer" else 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_rows_have_the_elements_of_the_checkpoint(case: dict[str, Any]) -> None:
    found = rows_of(read(case["config"], case["model"]))
    assert isinstance(found, Rows), found
    unlike = sum(one.parameters for one in found.unlike_checkpoint)
    assert sum(map(elements, found.weights)) - unlike == case["elements"]
