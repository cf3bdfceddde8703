"""What is read from NCCL's log."""

from __future__ import annotations

import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from smoke_plans import DENSE, plan

from shardlint.smoke import Trial, run
from shardlint.smoke.job import Seat
from shardlint.smoke.node import Node
from shardlint.smoke.plan import Deviation
from shardlint.smoke.surroundings import Port, Surroundings
from shardlint.smoke.transports import logged, transport_observations, transports

BETWEEN_NODES = """\
node0:71:90 [0] NCCL INFO Using network IB
node0:71:90 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node0:71:90 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
node0:71:90 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3/GDRDMA
node0:71:90 [0] NCCL INFO Connected all rings
"""


def _line(via: str) -> str:
    return f"node0:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via {via}\n"


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
def test_the_slow_way_is_told_where_a_fast_one_is_there(via: str, has_rdma: bool, names: list[str]) -> None:
    found = transports(_line(via))
    assert [(seen.name, seen.host) for seen in transport_observations(found, has_rdma, "a")] == [
        (name, "a") for name in names
    ]


def test_the_logs_of_all_ranks_of_a_node_are_added_up(tmp_path: Path) -> None:
    for rank in (71, 72):
        (tmp_path / f"nccl.node0.{rank}.log").write_text(_line("P2P/CUMEM") + _line("NET/IB/3/GDRDMA"))
    (tmp_path / "rank-0").write_text(_line("SHM/direct"))
    assert logged(tmp_path) == {"P2P/CUMEM": 2, "NET/IB/GDRDMA": 2}


def test_without_a_log_nothing_is_said(tmp_path: Path) -> None:
    assert list(transport_observations(logged(tmp_path), True)) == []


def _logs_planted_by(node: int, via: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL's log of one rank of a node, as it would be when the ranks start."""
    start = Node._start_process

    def start_and_plant(each: Node, listening: int = -1) -> None:
        start(each, listening)
        if each.seat.node == node:
            (each.folder / "nccl.host.1.log").write_text(_line(via) * 2)

    monkeypatch.setattr(Node, "_start_process", start_and_plant)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("fault", [(), (Deviation("end", (0,), ("split-mlp", "sleep")),)])
def test_what_the_ranks_of_other_hosts_send_through_is_told_by_all(
    fault: tuple[Deviation, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    _logs_planted_by(1, "NET/Socket/0", monkeypatch)
    _logs_planted_by(0, "P2P/CUMEM", monkeypatch)
    around = Surroundings("host0")
    lame = Surroundings("host1", ports=(Port("mlx5_0", "4: ACTIVE", "400 Gb/sec"),), rdma_usable=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seats = [Seat(node, 2, "127.0.0.1", port) for node in range(2)]
    trials = [Trial(seat, around=each, stall_seconds=1.5) for seat, each in zip(seats, (around, lame), strict=True)]
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(run, [plan(DENSE, *fault, tp=2)] * 2, trials)
    assert one.exit_code == two.exit_code == (1 if fault else 0)
    assert two.observations == one.observations
    seen = [(each.name, each.host, each.message) for each in one.observations]
    assert ("transport", "host0", "NCCL sends through P2P/CUMEM (2 channels)") in seen
    assert ("transport", "host1", "NCCL sends through NET/Socket (2 channels)") in seen
    assert [host for name, host, _message in seen if name == "fell-to-sockets"] == ["host1"]
