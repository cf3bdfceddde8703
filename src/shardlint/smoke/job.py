"""What one process of a run is told: which nodes there are, which of them it is, and what its ranks do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from shardlint.smoke.exchanges import Exchange
from shardlint.smoke.plan import Plan

Level = Literal["pre", "quick", "full"]
LEVELS: tuple[Level, ...] = ("pre", "quick", "full")

MOST_RANKS_ON_CPU = 32
"""Gloo connects every rank with every other: 64 ranks on 2 cores spend 21 s on that alone."""

ON_ONE_GPU = "gloo-cuda"
"""Beside nccl and gloo: the ranks of a host share its first GPU, which NCCL refuses, and exchange by gloo."""

PORT = 29571
"""Where node 0 waits for the others when nobody names another port."""

AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Where it is True, torchrun itself listens on MASTER_PORT; the nodes then meet on the port behind it."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Launcher(NamedTuple):
    """The variables by which a launcher tells each process that it starts where that stands among all of them."""

    rank: str
    processes: str
    local_rank: str = ""
    local_processes: str = ""
    """How many of the processes are on the same host."""
    hosts: str = ""
    """How many hosts there are, where the launcher says that instead."""
    within: tuple[str, ...] = ()
    """Numbers only inside of what the launcher has started; elsewhere the others mean something else."""

    def has_started(self, environment: Mapping[str, str]) -> bool:
        """Whether this process is one of its own."""
        return all(map(environment.get, (self.rank, self.processes))) and all(
            environment.get(name, "").isdecimal() for name in self.within
        )

    def hosts_of(self, environment: Mapping[str, str]) -> int:
        """How many hosts its processes are on; as many as processes where it does not tell."""
        each = _count(self.local_processes, environment, "1")
        return _count(self.hosts, environment, str(-(-_count(self.processes, environment) // each)))


LAUNCHERS = (
    # torchrun, and scripts that set the same
    Launcher("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    # Open MPI
    Launcher(
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
    ),
    # srun; a batch script has the numbers too, and is no task of a step
    Launcher("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_STEP_NUM_NODES", ("SLURM_STEP_ID",)),
    # MPICH, Intel MPI
    Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
"""The first of them that has started this process is believed."""


def _count(name: str, environment: Mapping[str, str], default: str = "", least: int = 1) -> int:
    """The number that a variable has. Raises ValueError for one that is none, or less than the least."""
    value = environment.get(name) or default
    if not value.isdecimal() or int(value) < least:
        raise ValueError(f"{name}={value} is no number from {least} on")
    return int(value)


class NowhereToMeet(Exception):
    """A launcher has started several processes, and none of them knows where rank 0 is."""


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
    held: tuple[int, ...] = ()
    """How many ranks each node holds; empty where all hold as many."""

    @property
    def hosts(self) -> int:
        """How many hosts there may be: one where nobody else could reach the address."""
        return 1 if self.together or self.host in LOOPBACK else self.nodes

    def ranks(self, world: int, node: int | None = None) -> range:
        """The ranks of a node (this one where none is named); without `held` the world divides by the nodes."""
        node = self.node if node is None else node
        held = self.held or (world // self.nodes,) * self.nodes
        first = sum(held[:node])
        return range(first, first + held[node])

    def node_of(self, rank: int, world: int) -> int:
        """Where a rank runs."""
        return next(node for node in range(self.nodes) if rank in self.ranks(world, node))

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Seat:
        """A seat after a way through JSON."""
        seat = cls(*data)
        return seat._replace(held=tuple(seat.held))


def launched_seat(environment: Mapping[str, str], world: int) -> Seat | None:
    """The seat that a launcher gave this process by its environment; None where nobody launched several.

    Raises ValueError for numbers that are none, and NowhereToMeet: each of the processes would try all ranks by itself,
    side by side on the same devices, and every one report a layout over all hosts that none of them has seen.
    """
    launcher = _launcher(environment)
    if launcher is None:
        return None
    node, nodes = _count(launcher.rank, environment, least=0), _count(launcher.processes, environment)
    if nodes < 2:
        return None
    if not environment.get("MASTER_ADDR"):
        told = f"{launcher.rank}={node} and {launcher.processes}={nodes} say that this is one of {nodes} processes"
        raise NowhereToMeet(
            f"{told}, and MASTER_ADDR is not set: it has to be the address of rank 0 in all of them; "
            "--nodes 1 tries the whole layout in this one"
        )
    port = _count("MASTER_PORT", environment, str(PORT))
    is_taken = environment.get(AGENT_STORE, "").lower() == "true"
    first_gpu = _count(launcher.local_rank, environment, "0", least=0) * (world // nodes)
    together = launcher.hosts_of(environment) == 1
    return Seat(node, nodes, environment["MASTER_ADDR"], port + is_taken, first_gpu, together)


def launched_hosts(environment: Mapping[str, str]) -> int:
    """How many hosts a launcher has started processes on. Raises ValueError for numbers that are none."""
    launcher = _launcher(environment)
    return launcher.hosts_of(environment) if launcher else 1


def _launcher(environment: Mapping[str, str]) -> Launcher | None:
    return next((each for each in LAUNCHERS if each.has_started(environment)), None)


class Job(NamedTuple):
    """What the process that forks the ranks of a node has to do."""

    plan: Plan
    seat: Seat
    backend: str
    """nccl, gloo or ON_ONE_GPU."""
    store: str
    """Where the ranks meet: `file:///...` on one host, `tcp://HOST:PORT/TOKEN` on several."""
    listening: int
    """The descriptor of the socket on which this process is to keep that store; -1 where another does."""
    deadline_seconds: float
    exchanges: tuple[Exchange, ...] = ()
    repetitions: int = 0
    """How often each exchange is timed."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        return {**self._asdict(), "plan": self.plan.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        """A job from what `to_json` gave, after a way through JSON."""
        rebuilt = {
            "plan": Plan.from_json(data["plan"]),
            "seat": Seat.from_json(data["seat"]),
            "exchanges": tuple(Exchange(*each) for each in data["exchanges"]),
        }
        return cls(**{**data, **rebuilt})
