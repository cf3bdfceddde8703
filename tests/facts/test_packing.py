"""Long lists, written short and read back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardlint.facts.packing import pack, unpack

NAMES = st.builds(
    lambda layer, expert, part: f"model.layers.{layer}.{f'experts.{expert}.' if expert is not None else ''}{part}",
    st.integers(0, 12),
    st.none() | st.integers(0, 4),
    st.sampled_from(["mlp.gate", "w1", "norm"]),
)


def stored(value: Any) -> Any:
    return unpack(json.loads(json.dumps(pack(value))))


@given(st.lists(st.sampled_from(["full", "sliding", 0, 4, None]), max_size=80))
def test_runs_come_back_in_their_order(layers: list[Any]) -> None:
    assert stored(layers) == layers


@given(st.lists(NAMES, unique=True, max_size=60))
def test_names_come_back_all_and_once(names: list[str]) -> None:
    assert sorted(stored(names)) == sorted(names)


@given(
    st.dictionaries(
        NAMES, st.sampled_from([{"quant_algo": "FP8"}, {"quant_algo": "NVFP4", "group_size": 16}]), max_size=80
    )
)
def test_keys_come_back_with_their_values(layers: dict[str, Any]) -> None:
    assert stored({"quantized_layers": layers, "bits": [1, 2]}) == {"quantized_layers": layers, "bits": [1, 2]}


def test_a_list_of_names_of_all_layers_is_short() -> None:
    names = [f"model.layers.{layer}.experts.{expert}.w1" for layer in range(60) for expert in range(128)]
    assert pack(names) == {"#names": [["model.layers.#.experts.#.w1", "0-59", "0-127"]]}
