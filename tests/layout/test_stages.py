"""Layers over pipeline stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.layout import PartitionFault, even_counts, stage_layers


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [
        (36, 5, [7, 7, 7, 8, 7]),
        (36, 7, [5, 5, 5, 5, 5, 6, 5]),
        (36, 8, [4, 4, 4, 5, 5, 5, 5, 4]),
        (32, 3, [11, 11, 10]),
        (61, 2, [31, 30]),
        (3, 5, [0, 1, 1, 1, 0]),
    ],
)
def test_the_last_stage_never_has_one_more(layers: int, stages: int, counts: list[int]) -> None:
    assert even_counts(layers, stages) == counts


def test_an_old_release_leaves_the_remainder_to_the_last_stage() -> None:
    assert even_counts(36, 5, "last") == [7, 7, 7, 7, 8]


@given(st.integers(1, 500), st.integers(1, 600), st.sampled_from(["before_last", "last"]))
def test_stages_cover_every_layer_once(layers: int, stages: int, remainder: str) -> None:
    ranges = stage_layers(layers, stages, remainder)  # type: ignore[arg-type]
    assert not isinstance(ranges, PartitionFault)
    assert len(ranges) == stages
    assert [layer for stage in ranges for layer in range(*stage)] == list(range(layers))


@pytest.mark.parametrize(
    ("partition", "kind", "said"),
    [
        ("9,9,18", "count", "3 parts for 4 pipeline stages"),
        ("9,9,9,8", "sum", "the parts add up to 35 and the model has 36 layers"),
        ("9,9,9,x", "text", '"9,9,9,x" is not a list of whole numbers such as "9,9,9,9"'),
        ("", "text", '"" is not a list of whole numbers such as "9,9,9,9"'),
        ("9" * 5000, "text", '"' + "9" * 39 + '…" is not a list of whole numbers such as "9,9,9,9"'),
    ],
)
def test_a_partition_at_fault_is_named(partition: str, kind: str, said: str) -> None:
    assert stage_layers(36, 4, partition=partition) == PartitionFault(kind, said)  # type: ignore[arg-type]


def test_a_partition_replaces_the_even_stages() -> None:
    assert stage_layers(36, 4, partition=" 10, 9,9, 8") == ((0, 10), (10, 19), (19, 28), (28, 36))


def test_a_partition_counts_at_one_stage_too() -> None:
    assert isinstance(stage_layers(36, 1, partition="18,18"), PartitionFault)


def test_a_negative_part_builds_layers_twice_as_the_engine_does() -> None:
    ranges = stage_layers(4, 3, partition="3,-1,2")
    assert ranges == ((0, 3), (3, 2), (2, 4))
    assert [stage.number for stage in ranges] == [3, 0, 2]  # type: ignore[union-attr]
