"""What one process of a run is told: which nodes there are, which of them it is, and what its ranks do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from shardlint.smoke.exchanges import Exchange
from shardlint.smoke.plan import Plan

Level = Literal["pre", "quick", "full"]
LEVELS: tuple[Level, ...] = ("pre", "quick", "full")

MOST_RANKS_ON_CPU = 32
"""Gloo connects every rank with every other: 64 ranks on 2 cores spend 21 s on that alone."""

RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun, srun and mpirun scripts set for each process that they start."""
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Where it is True, torchrun itself listens on MASTER_PORT; the nodes then meet on the port behind it."""


LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Seat(NamedTuple):
    """Which of the nodes this is, and where node 0 waits for the others. A node holds ranks in a row."""

    node: int = 0
    nodes: int = 1
    host: str = ""
    port: int = 0
    first_gpu: int = 0
    """Of several nodes that are processes of one host, each has GPUs of its own."""
    together: bool = False
    """A launcher says that all of them are on one host."""

    @property
    def hosts(self) -> int:
        """How many hosts there may be: one where nobody else could reach the address."""
        return 1 if self.together or self.host in LOOPBACK else self.nodes

    def ranks(self, world: int, node: int | None = None) -> range:
        """The ranks of a node (this one where none is named); the world divides by the nodes."""
        each = world // self.nodes
        first = (self.node if node is None else node) * each
        return range(first, first + each)

    def node_of(self, rank: int, world: int) -> int:
        """Where a rank runs."""
        return rank // (world // self.nodes)


def launched_seat(environment: Mapping[str, str], world: int) -> Seat | None:
    """The seat that a launcher gave this process by its environment; None where nobody launched several.

    Raises ValueError for numbers that are none.
    """
    if any(not environment.get(name) for name in RENDEZVOUS) or environment["WORLD_SIZE"] == "1":
        return None
    node, nodes, port = (int(environment[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    is_taken = environment.get(AGENT_STORE, "").lower() == "true"
    first_gpu = int(environment.get("LOCAL_RANK", "0")) * (world // nodes)
    together = environment.get("LOCAL_WORLD_SIZE") == environment["WORLD_SIZE"]
    return Seat(node, nodes, environment["MASTER_ADDR"], port + is_taken, first_gpu, together)


def launched_hosts(environment: Mapping[str, str]) -> int:
    """How many hosts a launcher has started processes on. Raises ValueError for numbers that are none."""
    if any(not environment.get(name) for name in RENDEZVOUS):
        return 1
    return max(1, int(environment["WORLD_SIZE"]) // int(environment.get("LOCAL_WORLD_SIZE", "1")))


class Job(NamedTuple):
    """What the process that forks the ranks of a node has to do."""

    plan: Plan
    seat: Seat
    backend: str
    store: str
    """Where the ranks meet: `file:///...` on one host, `tcp://HOST:PORT/TOKEN` on several."""
    listening: int
    """The descriptor of the socket on which this process is to keep that store; -1 where another does."""
    deadline_seconds: float
    exchanges: tuple[Exchange, ...] = ()
    repetitions: int = 0
    """How often each exchange is timed."""
    alone: bool = True
    """Each group is timed by itself too, not only with all others of its class."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        return {**self._asdict(), "plan": self.plan.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        """A job from what `to_json` gave, after a way through JSON."""
        rebuilt = {
            "plan": Plan.from_json(data["plan"]),
            "seat": Seat(*data["seat"]),
            "exchanges": tuple(Exchange(*each) for each in data["exchanges"]),
        }
        return cls(**{**data, **rebuilt})
