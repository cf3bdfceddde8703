"""Models as vLLM 0.33.0 itself built them, to the byte.

`experts_of_vllm.jsonl` has models with experts and with latent attention, `families_of_vllm.jsonl` those of families
that came later.  Each line holds the keys of a config that its family reads, the sizes, and per rank
`[dp, pp, tp, parameter bytes, layers, KV bytes per token]`, and maybe the bytes of the recurrent states of a sequence,
recorded from vLLM's own classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardlint.engines.versions import Version
from shardlint.engines.vllm.cutting import cutting
from shardlint.facts.geometry import read
from shardlint.layout import Sizes, lay_out

VLLM = cutting(Version((0, 33)))
FILES = [Path(__file__).with_name(name) for name in ("experts_of_vllm.jsonl", "families_of_vllm.jsonl")]
CASES = [json.loads(line) for file in FILES for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_every_recorded_rank_is_exact(case: dict[str, Any]) -> None:
    cache_type = case.get("kv_cache_dtype")
    layout = lay_out(Sizes(**case["sizes"]), read(case["config"], "a/model"), VLLM, kv_cache_dtype=cache_type)
    places = {(r.data_parallel_rank, r.pipeline_parallel_rank, r.tensor_parallel_rank): r for r in layout.ranks}
    assert (layout.unknown, layout.refused) == (None, None)
    states = case.get("states") or [None] * len(case["ranks"])
    for (dp, pp, tp, weight_bytes, layers, kv_bytes), state_bytes in zip(case["ranks"], states, strict=True):
        rank = places[dp, pp, tp]
        assert rank.weight_bytes == weight_bytes
        assert layers is None or list(rank.layers or ()) == layers
        assert kv_bytes is None or rank.kv_bytes_per_token_if_all_full == kv_bytes
        assert state_bytes is None or rank.state_bytes == state_bytes
