"""Two hosts: network namespaces of the test's own, joined by one cable that can be slowed and cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smoke_processes import none_left_within, processes_of

NAMES = tuple(f"shardlint-{os.getpid()}-{node}" for node in (0, 1))
CABLES = tuple(f"sl{os.getpid() % 10**7}n{node}" for node in (0, 1))
ADDRESSES = ("10.213.7.1", "10.213.7.2")

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


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts() -> Iterator[None]:
    """The namespaces, the cable between them, and loopback in each; skipped where they cannot be made."""
    try:
        for name in NAMES:
            _ip("netns", "add", name)
        _ip("link", "add", CABLES[0], "netns", NAMES[0], "type", "veth", "peer", "name", CABLES[1], "netns", NAMES[1])
        for name, cable, address in zip(NAMES, CABLES, ADDRESSES, strict=True):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
            _ip("-n", name, "link", "set", cable, "up")
            _ip("-n", name, "link", "set", "lo", "up")
    except (OSError, subprocess.CalledProcessError) as failure:
        _remove()
        pytest.skip(f"network namespaces cannot be made here: {getattr(failure, 'stderr', '') or failure}")
    yield
    _remove()


def _remove() -> None:
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _start(room: Path, *words: str) -> list[subprocess.Popen[str]]:
    tests = str(Path(__file__).parent)
    return [
        subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", NODE, str(room), tests, str(node), *words],
            env=os.environ | {"GLOO_SOCKET_IFNAME": cable},
            stdout=subprocess.PIPE,
            text=True,
        )
        for node, (name, cable) in enumerate(zip(NAMES, CABLES, strict=True))
    ]


def _said(nodes: list[subprocess.Popen[str]]) -> list[Any]:
    return [json.loads(node.communicate(timeout=100)[0]) for node in nodes]


@pytest.mark.usefixtures("hosts")
def test_a_slow_cable_is_told_with_figures(room: Path) -> None:
    slow = ["netns", "exec", NAMES[0], "tc", "qdisc", "add", "dev", CABLES[0], "root", "tbf"]
    try:
        _ip(*slow, "rate", "20mbit", "burst", "16kb", "latency", "500ms")
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"the cable cannot be slowed here: {getattr(failure, 'stderr', '') or failure}")
    one, two = _said(_start(room, "sound", "10"))
    assert one == two
    code, _cause, observations = one
    assert code == 0
    seen = {each["name"]: each for each in observations}
    assert seen["crosses-nodes"]["message"].startswith("pp [0,2] [1,3]: over nodes 0 (")
    assert seen["crosses-nodes"]["message"].endswith(", as planned")
    assert seen["slow-group"]["message"].startswith("send of pp [")
    assert " times slower than tp" in seen["slow-group"]["message"]


@pytest.mark.usefixtures("hosts")
def test_a_cable_that_is_cut_is_told_on_both_sides(room: Path) -> None:
    nodes = _start(room, "stuck", "40")
    end = time.monotonic() + 40
    while len(processes_of(room)) < 8 and time.monotonic() < end:  # two parents, their children, and four ranks
        time.sleep(0.05)
    time.sleep(1)  # until rank 0 stands still
    cut = time.monotonic()
    _ip("-n", NAMES[0], "link", "set", CABLES[0], "down")
    (code, cause, _), (other_code, other_cause, _) = _said(nodes)
    assert time.monotonic() - cut < 6
    assert (code, other_code) == (1, 1)
    silent = " was not heard of for 2 s: frozen, or its link is cut"
    assert cause.startswith("rank 2 (process ")
    assert cause.endswith(silent)
    assert other_cause.startswith("rank 0: node 0 (10.213.7.1)")
    assert other_cause.endswith(silent)
    assert none_left_within(room, 5)
