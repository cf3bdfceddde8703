"""Two hosts: network namespaces of the test's own, whose cables can be slowed and cut."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from smoke_network import Host, network, said
from smoke_processes import none_left_within, processes_of

NODE = """
import json, os, sys, tempfile
room, tests, node, stuck, stall = sys.argv[1:]
tempfile.tempdir = room
sys.path.insert(0, tests)
from smoke_plans import DENSE, plan
from shardlint.smoke import Trial, run, surroundings, trial
from shardlint.smoke.exchanges import Exchange
from shardlint.smoke.job import Seat
from shardlint.smoke.plan import Deviation
from shardlint.smoke.report import first_cause
trial.SILENT_SECONDS = 2.0
faults = [Deviation("end", (0,), ("split-mlp", "SIGSTOP"))] if stuck == "stuck" else []
exchanges = tuple(Exchange(what, kind, "", "prefill", 1, 1, 2**18) for what, kind in (("all-reduce", "tp"), ("send", "pp")))
result = run(
    plan(DENSE, *faults, tp=2, pp=2),
    Trial(Seat(int(node), 2, "10.213.7.1", 29571), exchanges=exchanges, planned_nodes=(0, 0, 1, 1), around=surroundings.read(os.environ), stall_seconds=float(stall)),
)
print(json.dumps([result.exit_code, first_cause(result), [seen._asdict() for seen in result.observations]]))
"""


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with network(2) as found:
        yield found


def test_a_slow_cable_is_told_with_figures(room: Path, hosts: list[Host]) -> None:
    slow = ["tc", "qdisc", "add", "dev", hosts[0].cable, "root", "tbf"]
    hosts[0].run(*slow, "rate", "20mbit", "burst", "16kb", "latency", "500ms")
    one, two = said([host.start(NODE, room, str(node), "sound", "10") for node, host in enumerate(hosts)])
    assert one == two
    code, _cause, observations = one
    assert code == 0
    seen = {each["name"]: each for each in observations}
    assert seen["crosses-nodes"]["message"].startswith("pp [0,2] [1,3]: over nodes 0 (")
    assert seen["crosses-nodes"]["message"].endswith(", as planned")
    assert seen["slow-group"]["message"].startswith("send of pp [")
    assert " times slower than groups of 2 inside of a host" in seen["slow-group"]["message"]


def test_a_cable_that_is_cut_is_told_on_both_sides(room: Path, hosts: list[Host]) -> None:
    nodes = [host.start(NODE, room, str(node), "stuck", "40") for node, host in enumerate(hosts)]
    end = time.monotonic() + 40
    while len(processes_of(room)) < 8 and time.monotonic() < end:  # two parents, their children, and four ranks
        time.sleep(0.05)
    time.sleep(1)  # until rank 0 stands still
    cut = time.monotonic()
    hosts[0].ip("link", "set", hosts[0].cable, "down")
    (code, cause, _), (other_code, other_cause, _) = said(nodes)
    assert time.monotonic() - cut < 6
    assert (code, other_code) == (1, 1)
    silent = " was not heard of for 2 s: frozen, or its link is cut"
    assert cause.startswith("rank 2 (process ")
    assert cause.endswith(silent)
    assert other_cause.startswith("rank 0: node 0 (10.213.7.1)")
    assert other_cause.endswith(silent)
    assert none_left_within(room, 5)
