"""Which nodes reach each other, by real calls: on loopback, and between network namespaces."""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from smoke_network import Host, network, said
from smoke_plans import DENSE, plan

from shardlint.smoke import SmokeResult, Trial, doors, run
from shardlint.smoke.conversation import Message
from shardlint.smoke.doors import ANOTHER, NOBODY, REFUSED, Called, Calls, Place
from shardlint.smoke.guest import Guest
from shardlint.smoke.job import Seat
from shardlint.smoke.reach import ADVICE, addresses, unreached
from shardlint.smoke.report import first_cause
from shardlint.smoke.surroundings import Surroundings

HERE = "127.0.0.1"
AROUND = Surroundings("one", addresses=("10.0.0.1",), interfaces={"lo": HERE, "eth0": "10.0.0.1", "ib0": "10.1.0.1"})


@pytest.fixture
def calls() -> Iterator[Calls]:
    """Node 1, that calls the others."""
    with closing(Calls()) as found:
        yield found


def _heard_out(*calling: Calls) -> None:
    """Listen until all calls have ended."""
    while not all(each.is_done for each in calling):
        for speaker in select.select([speaker for each in calling for speaker in each.speakers], [], [], 0.05)[0]:
            speaker.hear()
        for each in calling:
            each.go_on()


def _place(listening: socket.socket) -> Place:
    return Place(0, HERE, listening.getsockname()[1], "word")


def test_nodes_that_reach_each_other_say_so_in_both_directions(calls: Calls) -> None:
    with closing(Calls()) as other:
        calls.open(1, [HERE, "127.0.0.2"])
        other.open(0, [HERE])
        calls.call(other.places)
        other.call(calls.places)
        _heard_out(calls, other)
        assert calls.called == [Called(other.places[0], "")]
        assert sorted(other.called) == sorted(Called(place, "") for place in calls.places)


def test_a_port_that_nobody_listens_on_is_refused(calls: Calls) -> None:
    with closing(Calls()) as other:
        other.open(0, [HERE])
        gone = other.places
    calls.call(gone)
    _heard_out(calls)
    assert calls.called == [Called(gone[0], REFUSED)]


def test_a_call_that_another_takes_is_no_answer(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "WORD_SECONDS", 0.2)
    with socket.create_server((HERE, 0)) as silent, socket.create_server((HERE, 0)) as hasty, closing(Calls()) as other:
        other.open(0, [HERE])
        places = [_place(silent), _place(hasty), other.places[0]._replace(word="another")]
        hangs_up = threading.Thread(target=lambda: hasty.accept()[0].close())
        hangs_up.start()
        calls.call(places)
        _heard_out(calls, other)
        hangs_up.join()
    assert sorted(calls.called) == sorted(Called(place, ANOTHER) for place in places)


def test_a_call_that_is_dropped_is_given_up_after_two_seconds(calls: Calls) -> None:
    with socket.socket() as full:
        full.bind((HERE, 0))
        full.listen(0)
        place = _place(full)
        with socket.create_connection((HERE, place.port)):  # there is room for no more
            begun = time.monotonic()
            calls.call([place])
            _heard_out(calls)
            assert 1.9 < time.monotonic() - begun < 3
    assert calls.called == [Called(place, NOBODY)]


def test_many_calls_are_made_a_few_at_once(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "MOST_CALLS", 2)
    with closing(Calls()) as other:
        other.open(0, [HERE] * 5)
        calls.call(other.places)
        assert len(calls.speakers) == 2
        _heard_out(calls, other)
        assert sorted(calls.called) == sorted(Called(place, "") for place in other.places)


@pytest.mark.parametrize("place", [[0, "host1", 5, "w"], [0, HERE, 70000, "w"], [0, HERE, 5], [0, HERE, "x", "w"]])
def test_what_is_no_place_is_refused(place: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Place.from_json(place)


TWO = Seat(1, 2, "10.0.0.9", 5)


@pytest.mark.parametrize(
    ("seat", "changes", "wanted"),
    [
        (TWO, {}, ("10.0.0.1",)),
        (TWO, {"environment": {"GLOO_SOCKET_IFNAME": "ib0"}}, ("10.1.0.1",)),
        (TWO, {"environment": {"GLOO_SOCKET_IFNAME": "ib0,eth0"}}, ("10.1.0.1", "10.0.0.1")),
        (TWO, {"environment": {"GLOO_SOCKET_IFNAME": "eth9"}}, ("10.2.0.1",)),
        (TWO, {"addresses": ("127.0.1.1", "10.0.0.1")}, ("10.2.0.1",)),
        (TWO, {"addresses": ("10.9.9.9", "10.0.0.1"), "elsewhere": ("10.9.9.9",)}, ("10.0.0.1",)),
        (TWO, {"addresses": ()}, ("10.2.0.1",)),
        (TWO, {"environment": {"NCCL_SOCKET_IFNAME": "ib"}}, ("10.0.0.1",)),
        (TWO, {"environment": {"NCCL_SOCKET_IFNAME": "ib"}, "gpus": (0,)}, ("10.0.0.1", "10.1.0.1")),
        (Seat(1, 2, "node0", 5, together=True), {}, ("10.2.0.1",)),
    ],
)
def test_ranks_listen_where_gloo_and_nccl_are_told(seat: Seat, changes: Any, wanted: tuple[str, ...]) -> None:
    assert addresses(seat, AROUND._replace(**changes), "10.2.0.1") == wanted


def _called(faults: dict[tuple[int, int], str], nodes: int) -> dict[int, list[Called]]:
    """What all nodes tell where some calls (caller, callee) fail; node N listens on 10.0.0.N:N0."""
    at = {node: Place(node, f"10.0.0.{node}", 10 * node, "") for node in range(nodes)}
    return {
        caller: [Called(at[callee], faults.get((caller, callee), "")) for callee in at if callee != caller]
        for caller in at
    }


def _messages(faults: dict[tuple[int, int], str], nodes: int, *silent: int) -> list[str]:
    told = {node: calls for node, calls in _called(faults, nodes).items() if node not in silent}
    return [seen.message for seen in unreached({node: f"host{node}" for node in range(nodes)}, told)]


def test_a_failure_is_told_with_the_way_back() -> None:
    assert _messages({}, 3) == []
    assert _messages({(1, 2): NOBODY}, 3) == [
        "host1 -> host2 10.0.0.2:20: no answer in 2 s (dropped: a firewall or a missing route); host2 -> host1 answers"
    ]
    assert _messages({(1, 2): "Invalid argument (EINVAL)", (2, 1): NOBODY}, 3) == [
        "host1 -> host2 10.0.0.2:20: Invalid argument (EINVAL); host2 -> host1 10.0.0.1:10: " + NOBODY
    ]


def test_a_host_that_nobody_reaches_is_told_once() -> None:
    alone = {pair: REFUSED for other in (0, 2, 3, 4, 5) for pair in ((other, 1), (1, other))}
    assert _messages(alone, 6) == [
        f"host0, host2, host3, host4 and 1 more -> host1 10.0.0.1:10: {REFUSED}; host1 -> each of them: {REFUSED}"
    ]


def test_a_node_that_does_not_tell_leaves_the_way_back_open() -> None:
    assert _messages({(0, 1): NOBODY}, 3, 1) == [
        "host1 was asked whom it reaches, and does not say",
        f"host0 -> host1 10.0.0.1:10: {NOBODY}; host1 -> host0: not known",
    ]


def _port() -> int:
    with socket.create_server((HERE, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _run(*hosts: Surroundings, told: list[str] | None = None) -> list[SmokeResult]:
    """What each node comes to at --level pre."""
    port, of = _port(), plan(DENSE, pp=len(hosts))
    trials = [Trial(Seat(node, len(hosts), HERE, port), "pre", around) for node, around in enumerate(hosts)]
    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(pool.map(lambda trial: run(of, trial, (told if told is not None else []).append), trials))


@pytest.mark.usefixtures("room")
def test_a_node_that_refuses_is_told_by_all_nodes_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = Guest._hello

    def hello_and_shut(guest: Guest) -> Message:
        words = hello(guest)
        if guest.seat.node == 1:
            guest.calls.close()
            guest.calls.doors.clear()
        return words

    monkeypatch.setattr(Guest, "_hello", hello_and_shut)
    results = _run(*(Surroundings(f"host{node}") for node in range(3)))
    assert [(result.exit_code, result.kind) for result in results] == [(1, "surroundings")] * 3
    (cause,) = {first_cause(result) for result in results}
    assert cause is not None
    assert re.fullmatch(
        rf"host0, host2 -> host1 127\.0\.0\.1:\d+: {re.escape(REFUSED)}; host1 -> each of them answers", cause
    )


@pytest.mark.usefixtures("room")
def test_processes_of_one_host_do_not_call_each_other() -> None:
    told: list[str] = []
    one = Surroundings("one", machine="boot", network="net")
    assert [result.exit_code for result in _run(one, one, told=told)] == [0, 0]
    assert not [line for line in told if line.startswith("calling between")]
    assert [result.exit_code for result in _run(one, one._replace(host="two"), told=told)] == [0, 0]
    assert "calling between 2 hosts" in told


NODE = """
import json, os, sys, tempfile
room, tests, node = sys.argv[1:]
tempfile.tempdir = room
sys.path.insert(0, tests)
from smoke_plans import DENSE, plan
from shardlint.smoke import Trial, run, surroundings
from shardlint.smoke.job import Seat
around = surroundings.read(os.environ)._replace(host=f"host{node}", shared_memory_free=2**40)
result = run(plan(DENSE, pp=3), Trial(Seat(int(node), 3, "10.213.7.1", 29571), "pre", around))
seen = [[each.name, each.severity, each.message, each.advice] for each in result.observations]
print(json.dumps([result.exit_code, result.could_not_run, [each for each in seen if each[0] == "reach"]]))
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with network(3) as found:
        yield found


def _all_say(hosts: list[Host], room: Path) -> list[str]:
    """The messages, which are the same on all nodes."""
    first, *others = said([host.start(NODE, room, str(node)) for node, host in enumerate(hosts)])
    assert others == [first, first]
    code, could_not_run, seen = first
    assert (code, could_not_run) == (1 if seen else 0, "")
    assert all((name, severity, advice) == ("reach", "error", ADVICE) for name, severity, _message, advice in seen)
    return [message for _name, _severity, message, _advice in seen]


def test_hosts_that_all_reach_each_other_are_passed(room: Path, hosts: list[Host]) -> None:
    assert _all_say(hosts, room) == []


def test_a_pair_beside_node_0_of_which_one_direction_is_dropped(room: Path, hosts: list[Host]) -> None:
    """Host 1 calls from a second address, to which host 2 has no way back."""
    second = f"{hosts[1].address}02"
    hosts[1].ip("address", "add", f"{second}/24", "dev", hosts[1].cable)
    hosts[1].ip("route", "change", "10.213.7.0/24", "dev", hosts[1].cable, "src", second)
    hosts[2].ip("route", "add", "blackhole", second)
    (message,) = _all_say(hosts, room)
    where = rf"host1 -> host2 {re.escape(hosts[2].address)}:\d+: "
    assert re.fullmatch(where + re.escape(f"{NOBODY}; host2 -> host1 answers"), message), message


def test_a_pair_without_a_route_is_told_in_the_words_of_the_kernel(room: Path, hosts: list[Host]) -> None:
    hosts[1].ip("route", "add", "unreachable", hosts[2].address)
    (message,) = _all_say(hosts, room)
    there, back = (rf"{re.escape(host.address)}:\d+: " for host in (hosts[2], hosts[1]))
    words = rf"host1 -> host2 {there}No route to host \(EHOSTUNREACH\); host2 -> host1 {back}{re.escape(NOBODY)}"
    assert re.fullmatch(words, message), message
