"""What is read from NCCL's log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from shardlint.smoke.transports import transport_observations, transports

BETWEEN_NODES = """\
node0:71:90 [0] NCCL INFO Using network IB
node0:71:90 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node0:71:90 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
node0:71:90 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3/GDRDMA
node0:71:90 [0] NCCL INFO Connected all rings
"""


def test_channels_are_counted_by_transport_whatever_the_adapter() -> None:
    assert transports(BETWEEN_NODES) == Counter({"P2P/CUMEM": 2, "NET/IB/GDRDMA": 1})
    assert transports("NCCL INFO Channel 02 : 2[201c0] -> 7[a01d0] via P2P/IPC/read") == {"P2P/IPC/read": 1}
    assert transports("NCCL INFO Using network Socket") == {}


@pytest.mark.parametrize(
    ("via", "has_rdma", "names"),
    [
        ("NET/IB/0/GDRDMA", True, ["transport"]),
        ("NET/Socket/0", True, ["transport", "fell-to-sockets"]),
        ("NET/Socket/0", False, ["transport"]),
        ("SHM/direct/direct", False, ["transport", "fell-to-shared-memory"]),
    ],
)
def test_the_slow_way_is_told_where_a_fast_one_is_there(
    via: str, has_rdma: bool, names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "nccl.node0.71.log").write_text(
        f"node0:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via {via}\n"
    )
    assert [seen.name for seen in transport_observations(tmp_path, has_rdma)] == names


def test_without_a_log_nothing_is_said(tmp_path: Path) -> None:
    assert list(transport_observations(tmp_path, True)) == []
