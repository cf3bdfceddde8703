"""Where vLLM puts the ranks of a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.layout.placement import Launching, Placement, place
from shardlint.layout.sizes import Sizes

SIZE = st.integers(1, 16)


def placed(sizes: Sizes, launching: Launching | None = None) -> Placement:
    placement = place(sizes, launching or Launching())
    assert isinstance(placement, Placement), placement
    return placement


def test_replicas_of_one_command_stand_beside_each_other() -> None:
    placement = placed(Sizes(tensor_parallel_size=4, data_parallel_size=4))
    assert (placement.ranks_per_host, placement.replicas_per_host, placement.hosts) == (16, 4, 1)


def test_local_replicas_leave_the_others_to_other_hosts() -> None:
    placement = placed(Sizes(8, data_parallel_size=4), Launching(data_parallel_size_local=1))
    assert (placement.ranks_per_host, placement.hosts) == (8, 4)
    assert placed(Sizes(8, data_parallel_size=4), Launching(one_replica_per_process=True)).ranks_per_host == 8


@pytest.mark.parametrize(
    ("sizes", "per_host", "replicas"),
    [
        (Sizes(16, nnodes=2), 8, None),  # a replica over both nodes
        (Sizes(8, 2, nnodes=2), 8, None),
        (Sizes(4, data_parallel_size=8, nnodes=2), 16, 4),  # four replicas on each
        (Sizes(8, data_parallel_size=2, nnodes=4), 4, None),  # each replica over two of four
    ],
)
def test_nnodes_share_the_ranks(sizes: Sizes, per_host: int, replicas: int | None) -> None:
    placement = placed(sizes)
    assert (placement.ranks_per_host, placement.replicas_per_host) == (per_host, replicas)


def test_ray_and_external_launchers_decide_for_themselves() -> None:
    for launching in (Launching("ray"), Launching("external_launcher"), Launching(data_parallel_backend="ray")):
        placement = placed(Sizes(8, 2), launching)
        assert (placement.ranks_per_host, placement.hosts) == (None, None)
        assert placement.chosen == (launching.executor is not None)


def test_what_the_engine_would_not_start_is_said() -> None:
    assert place(Sizes(3, nnodes=2), Launching()) == "3 ranks do not divide by 2 nodes"
    assert place(Sizes(2, data_parallel_size=3, nnodes=2), Launching(data_parallel_size_local=1)) == (
        "2 nodes do not divide by 3 groups of data parallel ranks"
    )
    assert isinstance(place(Sizes(2, nnodes=2), Launching(data_parallel_size_local=0)), str)


@given(SIZE, SIZE, SIZE, st.integers(1, 8))
def test_the_hosts_hold_every_rank_once(tp: int, pp: int, dp: int, nnodes: int) -> None:
    sizes = Sizes(tp, pp, dp, nnodes=nnodes)
    placement = place(sizes, Launching())
    if isinstance(placement, str):
        assert sizes.world_size % nnodes or nnodes > 1
        return
    assert placement.ranks == sizes.world_size
    assert placement.ranks_per_host is not None
    if nnodes > 1 and placement.replicas_per_host is None:
        assert placement.ranks_per_host <= sizes.replica_size
    else:
        assert placement.ranks_per_host % sizes.replica_size == 0
