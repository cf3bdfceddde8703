"""Several supervisors that run one plan together: here on one host, through its loopback interface."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from smoke_plans import DENSE, plan
from smoke_processes import none_left_within, processes_of

from shardlint import __version__
from shardlint.smoke import Plan, SmokeResult, Trial, guest, judge, run, trial
from shardlint.smoke.conversation import Line, call
from shardlint.smoke.job import Seat
from shardlint.smoke.judge import Judge
from shardlint.smoke.plan import Deviation
from shardlint.smoke.records import Ready
from shardlint.smoke.report import first_cause, headline
from shardlint.smoke.surroundings import Surroundings

pytestmark = pytest.mark.usefixtures("room")

HOST = "127.0.0.1"
HERE = Surroundings("here", addresses=("10.0.0.1",), interfaces={"lo": "127.0.0.1"}, shared_memory_free=2**40)


def _port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port


def _trials(nodes: int = 2, hosts: Sequence[Surroundings] = (), **otherwise: Any) -> list[Trial]:
    port = _port()
    hosts = hosts or [HERE._replace(host=f"host{node}") for node in range(nodes)]
    return [Trial(Seat(node, nodes, HOST, port), around=hosts[node], **otherwise) for node in range(nodes)]


def _run(plans: Sequence[Plan], trials: Sequence[Trial]) -> list[SmokeResult]:
    """What each node comes to."""
    with ThreadPoolExecutor(len(trials)) as pool:
        return list(pool.map(run, plans, trials))


def test_two_nodes_hold_together_and_see_what_crosses_them() -> None:
    one, two = _run([plan(DENSE, tp=2, pp=2)] * 2, _trials(planned_nodes=(0, 0, 0, 0)))
    assert (one.exit_code, one.failed, one.not_reached) == (0, (), ())
    assert two._replace(seconds=one.seconds) == one
    assert "4 processes of 2 hosts: host0, host1" in headline(one)
    assert "several nodes" not in headline(one)
    (crossing,) = (seen for seen in one.observations if seen.name == "crosses-nodes")
    assert (crossing.severity, crossing.message) == (
        "warning",
        "pp [0,2] [1,3]: planned inside of a node, observed over nodes 0 (host0) and 1 (host1)",
    )


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no loopback of IPv6 here")
def test_nodes_meet_at_an_address_of_ipv6() -> None:
    trials = [each._replace(seat=each.seat._replace(host="::1")) for each in _trials()]
    assert [result.exit_code for result in _run([plan(DENSE, tp=2)] * 2, trials)] == [0, 0]


def test_an_address_of_ipv6_is_told_in_brackets() -> None:
    assert call(Seat(1, 2, "::1", 1), time.monotonic()).startswith(("[::1]:1 refuses", "[::1]:1 cannot be reached"))


def test_a_killed_rank_is_the_first_cause_on_every_node() -> None:
    killed = plan(DENSE, Deviation("end", (3,), ("split-mlp", "SIGKILL")), tp=2, pp=2)
    one, two = _run([killed] * 2, _trials())
    assert (one.exit_code, two.exit_code, one.kind) == (1, 1, "rank-lost")
    cause = first_cause(one)
    assert cause is not None
    assert cause.startswith("rank 3 (process ")
    assert cause.endswith(" on host1) was ended by SIGKILL in split-mlp")
    assert first_cause(two) == cause


def test_a_node_that_does_not_come_is_missed_by_its_ranks() -> None:
    (first, _second) = _trials(deadline_seconds=0.4, level="pre")
    result = run(plan(DENSE, tp=2, pp=2), first)
    assert result.exit_code == 2
    assert result.could_not_run == "1 of 2 nodes came within 0.4 s; missing: node 1 (ranks 2 to 3)"


def test_where_node_0_does_not_listen_the_other_says_so() -> None:
    (_first, second) = _trials(deadline_seconds=0.4, level="pre")
    result = run(plan(DENSE, tp=2, pp=2), second)
    assert result.exit_code == 2
    assert result.could_not_run == (
        f"node 1 did not meet node 0 in 0.4 s: {HOST}:{second.seat.port} refuses connections "
        "(nothing listens there: node 0 is not up, or the port is another)"
    )


@pytest.mark.parametrize("name", ["nobody.invalid", "a..b", "x" * 64])
def test_a_name_that_does_not_resolve_is_told_from_a_port_that_refuses(name: str) -> None:
    why = call(Seat(1, 2, name, 1), time.monotonic())
    assert why == f"the name {name} does not resolve (a pod's name appears some time after the pod)"


def test_a_name_that_can_be_none_is_none_to_listen_on() -> None:
    result = run(plan(DENSE, tp=2), Trial(Seat(0, 2, "a..b", 5), level="pre"))
    assert result.could_not_run == "node 0 cannot listen on a..b:5: Name or service not known"


def test_an_address_of_another_host_is_none_to_listen_on() -> None:
    result = run(plan(DENSE, tp=2), Trial(Seat(0, 2, "192.0.2.1", 5), level="pre"))
    assert result.could_not_run == "node 0 cannot listen on 192.0.2.1:5: Cannot assign requested address"


def test_nodes_with_other_plans_start_nothing() -> None:
    one, two = _run([plan(DENSE, tp=2, pp=2), plan(DENSE, tp=4)], _trials())
    assert (one.exit_code, two.exit_code) == (1, 1)
    assert [seen.message for seen in one.errors] == ["node 1 (host1) runs another plan than node 0: TP 4"]
    assert first_cause(two) == first_cause(one)


def test_what_one_node_sees_of_its_host_all_nodes_say() -> None:
    lame = HERE._replace(host="lame", environment={"GLOO_SOCKET_IFNAME": "^lo", "NCCL_ALGO": "Ring"})
    one, two = _run([plan(DENSE, tp=2, pp=2)] * 2, _trials(hosts=(HERE, lame)))
    assert (one.exit_code, two.exit_code) == (1, 1)
    assert [(seen.name, seen.host) for seen in one.errors] == [("gloo-interface", "lame")]
    assert "NCCL_ALGO is unset on here, Ring on lame" in [seen.message for seen in one.observations]
    assert two.observations == one.observations
    assert not one.claims


def test_releases_that_differ_between_nodes_are_told(tmp_path: Path) -> None:
    (first, _second) = _trials()
    with Judge(plan(DENSE, tp=2), first, tmp_path) as judge:
        judge.around[1] = HERE._replace(host="host1")
        judge.ready = {0: Ready("2.9.0", 8, "2.27.7"), 1: Ready("2.9.0", 8, "2.28.9")}
        assert [seen.message for seen in judge.versions()] == ["nccl is 2.27.7 on host0, 2.28.9 on host1"]


def test_surroundings_alone_are_looked_at_without_a_rank() -> None:
    one, two = _run([plan(DENSE, tp=2, pp=2)] * 2, _trials(level="pre"))
    assert (one.exit_code, two.exit_code, one.claims, one.backend) == (0, 0, (), "")
    assert one.seconds < 5


def _hello(**changed: Any) -> bytes:
    """What node 1 says first, changed."""
    hello = {"say": "hello", "node": 1, "version": __version__, "level": "pre", "plan": "", "degrees": "", "places": []}
    return json.dumps({**hello, "around": HERE.to_json(), "observations": [], **changed}).encode() + b"\n"


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"say": ' + b"[" * 200_000 + b"\n",
        b'{"say": "hello", "node": 1}\n',
        _hello(around={"x": 1}),
        _hello(around={"host": "x", "environment": [1]}),
        _hello(observations=[["hostname", "fatal", "x", "made up", ""]]),
        _hello(node=[1]),
    ],
)
def test_a_stranger_at_the_door_is_sent_away(words: bytes) -> None:
    trials = _trials(level="pre")
    with ThreadPoolExecutor(2) as pool:
        judged = pool.submit(run, plan(DENSE, tp=2), trials[0])
        line = call(trials[0].seat, time.monotonic() + 5)
        assert not isinstance(line, str)
        line.connection.sendall(words)
        assert line.connection.recv(1) == b""
        line.close()
        assert run(plan(DENSE, tp=2), trials[1]).exit_code == 0
        assert judged.result().exit_code == 0


def test_callers_that_say_nothing_are_sent_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MOST_STRANGERS", 3)
    monkeypatch.setattr(judge, "HELLO_SECONDS", 0.5)
    trials = _trials(level="pre")
    with ThreadPoolExecutor(2) as pool, ExitStack() as lines:
        judged = pool.submit(run, plan(DENSE, tp=2), trials[0])
        mute = [call(trials[0].seat, time.monotonic() + 5) for _ in range(5)]
        for line in mute:
            assert isinstance(line, Line)
            lines.callback(line.close)
            line.connection.settimeout(5)
        begun = time.monotonic()
        for line in mute[:2]:
            assert line.connection.recv(1) == b""
        assert time.monotonic() - begun < 0.4
        assert mute[4].connection.recv(1) == b""
        assert time.monotonic() - begun > 0.4
        assert run(plan(DENSE, tp=2), trials[1]).exit_code == 0
        assert judged.result().exit_code == 0


def test_nodes_at_other_levels_start_nothing() -> None:
    first, second = _trials(level="pre")
    one, two = _run([plan(DENSE, tp=2)] * 2, [first, second._replace(level="quick")])
    assert (one.exit_code, two.exit_code) == (1, 1)
    assert [seen.message for seen in one.errors] == ["node 1 (host1) runs --level quick, node 0 --level pre"]
    assert first_cause(two) == first_cause(one)


def test_nodes_of_other_releases_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "__version__", "9.9")
    one, two = _run([plan(DENSE, tp=2)] * 2, _trials(level="pre"))
    assert one.could_not_run == two.could_not_run == f"node 1 runs shardlint 9.9, node 0 {__version__}"


SUPERVISOR = """
import sys, tempfile
room, tests, port = sys.argv[1:]
tempfile.tempdir = room
sys.path.insert(0, tests)
from smoke_plans import DENSE, plan
from shardlint.smoke import Trial, run
from shardlint.smoke.job import Seat
from shardlint.smoke.plan import Deviation
run(plan(DENSE, Deviation("end", (0,), ("split-mlp", "SIGSTOP")), tp=2, pp=2), Trial(Seat(1, 2, "127.0.0.1", int(port))))
"""


@pytest.mark.parametrize(
    ("fault", "how"),
    [
        (signal.SIGKILL, "left the run"),
        (signal.SIGSTOP, "was not heard of for 2 s: frozen, or its link is cut"),
    ],
)
def test_a_node_that_is_lost_is_named_by_the_other(
    fault: signal.Signals, how: str, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SILENT_SECONDS", 2.0)
    (first, _second) = _trials(stall_seconds=30.0)
    waits = plan(DENSE, Deviation("end", (0,), ("split-mlp", "SIGSTOP")), tp=2, pp=2)
    words = [sys.executable, "-c", SUPERVISOR, str(room), str(Path(__file__).parent), str(first.seat.port)]
    with ThreadPoolExecutor(1) as pool, subprocess.Popen(words) as second:
        judged = pool.submit(run, waits, first)
        _ranks_are_there(room)
        second.send_signal(fault)
        result = judged.result()
        second.kill()
    assert result.exit_code == 1
    messages = {claim.rank: claim.message for claim in result.claims if not claim.ok}
    assert sorted(messages) == [2, 3], messages
    assert messages[2].startswith("rank 2 (process ")
    assert messages[2].endswith(how)
    assert none_left_within(room, 5)
    for folder in room.iterdir():  # that of the node that was killed
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _ranks_are_there(room: Path) -> None:
    """Wait until all ranks of both nodes are forked, two beside the process of each that forked them."""
    end = time.monotonic() + 30
    while len(processes_of(room)) < 7 and time.monotonic() < end:
        time.sleep(0.02)
