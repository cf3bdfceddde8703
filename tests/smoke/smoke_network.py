"""Hosts of the test's own: network namespaces, each with a cable to one bridge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NETWORK = "10.213.7"
HUB = f"shardlint-{os.getpid()}-hub"


class Host(NamedTuple):
    """One namespace."""

    name: str
    cable: str
    """Its interface."""
    address: str

    def ip(self, *words: str) -> None:
        _run("ip", "-n", self.name, *words)

    def run(self, *words: str) -> None:
        """Have a command run there; skip the test where it cannot be."""
        try:
            _run("ip", "netns", "exec", self.name, *words)
        except (OSError, subprocess.CalledProcessError) as failure:
            pytest.skip(f"this cannot be done here: {' '.join(words)}: {_why(failure)}")

    def start(self, code: str, room: Path, *words: str) -> subprocess.Popen[str]:
        """Have Python code run there, which prints JSON. Its first words are the room and the folder of the tests."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, "-c", code, room, Path(__file__).parent, *words],
            env=os.environ | {"GLOO_SOCKET_IFNAME": self.cable},
            stdout=subprocess.PIPE,
            text=True,
        )


def said(processes: list[subprocess.Popen[str]]) -> list[Any]:
    """What each of them prints, one JSON text."""
    printed = [process.communicate(timeout=100)[0] for process in processes]
    assert all(printed)
    return [json.loads(text) for text in printed]


@contextmanager
def network(count: int) -> Iterator[list[Host]]:
    """So many hosts, which all reach each other. The test is skipped where they cannot be made."""
    hosts = [
        Host(f"shardlint-{os.getpid()}-{node}", f"sl{os.getpid() % 10**7}n{node}", f"{NETWORK}.{node + 1}")
        for node in range(count)
    ]
    try:
        try:
            _lay(hosts)
        except (OSError, subprocess.CalledProcessError) as failure:
            pytest.skip(f"network namespaces cannot be made here: {_why(failure)}")
        yield hosts
    finally:
        for name in (HUB, *(host.name for host in hosts)):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _lay(hosts: list[Host]) -> None:
    _run("ip", "netns", "add", HUB)
    _run("ip", "-n", HUB, "link", "add", "bridge", "type", "bridge")
    _run("ip", "-n", HUB, "link", "set", "bridge", "up")
    for number, host in enumerate(hosts):
        socket = f"socket{number}"
        _run("ip", "netns", "add", host.name)
        _run("ip", "link", "add", host.cable, "netns", host.name, "type", "veth", "peer", "name", socket, "netns", HUB)
        _run("ip", "-n", HUB, "link", "set", socket, "master", "bridge", "up")
        host.ip("address", "add", f"{host.address}/24", "dev", host.cable)
        host.ip("link", "set", host.cable, "up")
        host.ip("link", "set", "lo", "up")


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


def _why(failure: Exception) -> str:
    return str(getattr(failure, "stderr", "") or failure).strip()
