"""Ranks, groups and nodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint.layout import GroupKind, Sizes, crossing, group_of, groups, place_of, rank_of, ranks_per_node
from shardlint.layout.ranks import expert_rank

degrees = st.integers(1, 4)
sizes_of_all_kinds = st.builds(
    Sizes,
    tensor_parallel_size=degrees,
    pipeline_parallel_size=degrees,
    data_parallel_size=degrees,
    prefill_context_parallel_size=degrees,
    decode_context_parallel_size=st.just(1),
)
kinds = st.sampled_from(["tp", "pp", "dp", "pcp", "dcp", "ep"])


def test_tensor_ranks_are_neighbours_and_data_ranks_far_apart() -> None:
    sizes = Sizes(tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=2)
    assert groups("tp", sizes) == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert groups("pp", sizes) == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert groups("dp", sizes) == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert groups("ep", sizes) == ((0, 1, 4, 5), (2, 3, 6, 7))


def test_decode_context_groups_run_through_the_prefill_context_ranks_first() -> None:
    sizes = Sizes(tensor_parallel_size=4, decode_context_parallel_size=2, data_parallel_size=2)
    assert groups("dcp", sizes) == ((0, 1), (2, 3), (4, 5), (6, 7))
    both = Sizes(tensor_parallel_size=2, prefill_context_parallel_size=2, decode_context_parallel_size=2)
    assert groups("pcp", both) == ((0, 2), (1, 3))
    assert groups("dcp", both) == groups("pcp", both)
    assert groups("dcp", both._replace(decode_context_parallel_size=4)) == ((0, 2, 1, 3),)
    assert groups("dcp", both._replace(decode_context_parallel_size=1)) == ((0,), (2,), (1,), (3,))


@settings(deadline=None)
@given(sizes_of_all_kinds, kinds, st.data())
def test_groups_of_a_kind_hold_every_rank_once(sizes: Sizes, kind: GroupKind, data: st.DataObject) -> None:
    attention_ranks = sizes.tensor_parallel_size * sizes.prefill_context_parallel_size
    divisors = [size for size in range(1, attention_ranks + 1) if attention_ranks % size == 0]
    sizes = sizes._replace(decode_context_parallel_size=data.draw(st.sampled_from(divisors)))
    found = groups(kind, sizes)
    assert sorted(rank for group in found for rank in group) == list(range(sizes.world_size))
    assert len({len(group) for group in found}) == 1
    assert all(group_of(kind, group[-1], sizes) == group for group in found)


@settings(deadline=None)
@given(sizes_of_all_kinds)
def test_a_place_gives_its_rank_back(sizes: Sizes) -> None:
    assert [rank_of(place_of(rank, sizes), sizes) for rank in range(sizes.world_size)] == list(range(sizes.world_size))


@settings(deadline=None)
@given(sizes_of_all_kinds)
def test_expert_ranks_number_each_expert_group(sizes: Sizes) -> None:
    for group in groups("ep", sizes):
        numbers = [expert_rank(place_of(rank, sizes), sizes) for rank in group]
        assert numbers == list(range(sizes.expert_group_size))


@pytest.mark.parametrize(
    ("sizes", "gpus_per_node", "per_node"),
    [
        (Sizes(8, 2), 8, 8),
        (Sizes(8, 2, nnodes=4), 8, 4),  # nodes with GPUs to spare share the ranks evenly
        (Sizes(8, 2, nnodes=2), None, 8),
        (Sizes(8, 2), None, None),
        (Sizes(8, 2), 0, None),
        (Sizes(3, 1, nnodes=2), 8, 8),
    ],
)
def test_consecutive_ranks_share_a_node(sizes: Sizes, gpus_per_node: int | None, per_node: int | None) -> None:
    assert ranks_per_node(sizes, gpus_per_node) == per_node


def test_a_group_of_sixteen_crosses_nodes_of_eight() -> None:
    assert crossing("tp", Sizes(16), 8) == (tuple(range(16)),)
    assert crossing("tp", Sizes(8, 2), 8) == ()
