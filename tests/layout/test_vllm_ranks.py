"""Ranks that vLLM 0.33.0 itself built: bytes of parameters, layers and KV bytes, to the byte.

Each line of `ranks_of_vllm.jsonl` holds the numbers of a config, the sizes, and per rank
`[dp, pp, tp, parameter bytes, layers, KV bytes per token]`, recorded from vLLM's own classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from layout_models import VLLM, geometry

from shardlint.layout import Sizes, lay_out

CASES = [json.loads(line) for line in Path(__file__).with_name("ranks_of_vllm.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_every_recorded_rank_is_exact(case: dict[str, Any]) -> None:
    layout = lay_out(Sizes(**case["sizes"]), geometry(case["config"]), VLLM)
    places = {(r.data_parallel_rank, r.pipeline_parallel_rank, r.tensor_parallel_rank): r for r in layout.ranks}
    assert layout.unknown is None
    assert layout.refused is None
    for dp, pp, tp, weight_bytes, layers, kv_bytes in case["ranks"]:
        rank = places[dp, pp, tp]
        assert rank.weight_bytes == weight_bytes
        assert layers is None or list(rank.layers or ()) == layers
        assert kv_bytes is None or rank.kv_bytes_per_token_if_all_full == kv_bytes
