"""How a plan is tried: on which nodes, how thoroughly, and what is known of the hosts beforehand."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from shardlint.smoke.exchanges import Exchange
from shardlint.smoke.job import Level, Seat
from shardlint.smoke.surroundings import Surroundings

DEADLINE_SECONDS = 60.0
STALL_SECONDS = 10.0
"""Without a word from any rank for so long, the run hangs: a check takes milliseconds."""

SILENT_SECONDS = 5.0
"""Without a beat of another node for so long, the node or its link is lost: there are two a second."""

REPETITIONS = {"pre": 0, "quick": 5, "full": 50}
"""How often each exchange is timed."""


class Trial(NamedTuple):
    """All that is asked for beside the plan."""

    seat: Seat = Seat()
    level: Level = "quick"
    around: Surroundings | None = None
    """This host; None where it is not to be judged."""
    exchanges: tuple[Exchange, ...] = ()
    planned_nodes: tuple[int | None, ...] = ()
    """The node that the manifest gives each rank; empty or None where it does not tell."""
    deadline_seconds: float = DEADLINE_SECONDS
    """For the nodes to meet, and from then on once more for the run."""
    stall_seconds: float = STALL_SECONDS
    share_gpu: bool = False
    """Have all ranks compute on the first GPU of their host; what NCCL does is then not seen."""
    against_vllm: bool = False
    """Compare the groups with those that the vLLM of this machine makes."""
    door: socket.socket | None = None
    """Where node 0 listens already; None where it is to open the port of its seat."""

    @property
    def silent_seconds(self) -> float:
        return min(self.stall_seconds, SILENT_SECONDS)

    @property
    def repetitions(self) -> int:
        return REPETITIONS[self.level]

    def to_json(self) -> dict[str, Any]:
        """Plain data of what is the same wherever it is tried; `from_json` takes it back."""
        return {**self._asdict(), "around": None, "door": None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """A trial from what `to_json` gave, after a way through JSON."""
        rebuilt = {
            "seat": Seat.from_json(data["seat"]),
            "exchanges": tuple(Exchange(*each) for each in data["exchanges"]),
            "planned_nodes": tuple(data["planned_nodes"]),
        }
        return cls(**{**data, **rebuilt})


class Host(NamedTuple):
    """One node of a run. A launcher's node, a machine and what shares memory need not be the same."""

    node: int
    around: Surroundings
    torch: str = ""
    nccl: str = ""
    """Their versions; empty where torch was not imported."""

    @property
    def name(self) -> str:
        return self.around.host

    @property
    def place(self) -> tuple[str, ...]:
        """Its name, kernel, shared memory and network."""
        around = self.around
        return (around.host, around.machine, around.memory_domain, around.network)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        return {**self._asdict(), "around": self.around.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "around": Surroundings.from_json(data["around"])})


def places(hosts: Sequence[Host]) -> dict[int, int]:
    """Of each node the first one that is on the same host: launchers start several processes there.

    What is the same has one name, kernel, shared memory and network; a host of which none is known is one of its own.
    """
    first: dict[tuple[str, ...], int] = {}
    kinds = [(host.node, host.place if host.around.machine else (str(host.node),)) for host in hosts]
    return {node: first.setdefault(kind, node) for node, kind in kinds}


def hosts_of_ranks(seat: Seat, world: int, hosts: Sequence[Host]) -> dict[int, int]:
    """Of each rank the first node that is on the same host; its own node where nothing is known of that."""
    place = places(hosts)
    nodes = {rank: seat.node_of(rank, world) for rank in range(world)}
    return {rank: place.get(node, node) for rank, node in nodes.items()}
