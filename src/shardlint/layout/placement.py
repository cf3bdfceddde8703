"""How many ranks one host has to hold, as vLLM spreads them over its hosts.

The conditions are those of vLLM 0.33.0, `engine/arg_utils.py:2399` and `config/parallel.py:810`.
"""

from __future__ import annotations

from shardlint.findings import Span
from shardlint.findings.records import NamedTuple
from shardlint.layout.sizes import Sizes

NO_HOST_OF_ITS_OWN = ("ray", "external_launcher")
"""Executors that leave it to others which host a rank runs on."""


class Launching(NamedTuple):
    """What else than the sizes decides where ranks run; None where nobody wrote it."""

    executor: str | None = None
    data_parallel_backend: str = "mp"
    data_parallel_size_local: int | None = None
    one_replica_per_process: bool = False
    """The external load balancer: each command starts one data parallel rank."""


class Placement(NamedTuple):
    """Where the ranks of one instance run."""

    executor: str
    """`mp`, `uni`, `ray` or `external_launcher`."""
    chosen: bool
    """Somebody wrote the executor; else the engine takes the one that it defaults to."""
    nnodes: int
    replica_size: int
    """Ranks of one replica: TP x PP x PCP."""
    ranks: int
    """Of the whole instance."""
    replicas_per_host: int | None
    """Replicas that one host starts, where a replica stays on one host; None where it does not, or others decide."""
    ranks_per_host: int | None
    """Ranks that one host has to hold; None where others decide."""

    @property
    def hosts(self) -> int | None:
        """Hosts that the ranks need; None where others decide."""
        return None if not self.ranks_per_host else -(-self.ranks // self.ranks_per_host)


def place(sizes: Sizes, launching: Launching) -> Placement | str:
    """Where the ranks run, or in one sentence why the engine would not start them that way."""
    executor = launching.executor or ("ray" if launching.data_parallel_backend == "ray" else "mp")
    replicas: int | None = None
    ranks_per_host: int | None = None
    if executor not in NO_HOST_OF_ITS_OWN:
        spread = _several_hosts(sizes, launching) if sizes.nnodes > 1 else _one_command(sizes, launching)
        if isinstance(spread, str):
            return spread
        replicas, ranks_per_host = spread
    return Placement(
        executor=executor,
        chosen=launching.executor is not None,
        nnodes=sizes.nnodes,
        replica_size=sizes.replica_size,
        ranks=sizes.world_size,
        replicas_per_host=replicas,
        ranks_per_host=ranks_per_host,
    )


def _one_command(sizes: Sizes, launching: Launching) -> tuple[int, int]:
    """Without --nnodes a command starts its replicas beside each other on its own host."""
    replicas = launching.data_parallel_size_local
    if launching.one_replica_per_process:
        replicas = 1
    elif replicas is None:
        replicas = sizes.data_parallel_size
    return replicas, replicas * sizes.replica_size


def _several_hosts(sizes: Sizes, launching: Launching) -> tuple[int | None, int] | str:
    if sizes.world_size % sizes.nnodes:
        return f"{sizes.world_size} ranks do not divide by {sizes.nnodes} nodes"
    replicas = launching.data_parallel_size_local
    if launching.one_replica_per_process:
        replicas = 1
    elif replicas is None:
        replicas = max(sizes.world_size // sizes.nnodes // sizes.replica_size, 1)
    if replicas < 1:
        return f"{replicas} data parallel ranks on a node"
    groups = max(sizes.data_parallel_size // replicas, 1)
    if sizes.nnodes % groups and not launching.one_replica_per_process:
        return f"{sizes.nnodes} nodes do not divide by {groups} groups of data parallel ranks"
    nodes_of_replica = max(sizes.nnodes // groups, 1)
    if nodes_of_replica > 1:
        return None, sizes.replica_size // nodes_of_replica
    return replicas, replicas * sizes.replica_size


class Tenant(NamedTuple):
    """An engine on cards that others may use too."""

    name: str
    cards: tuple[str, ...]
    """The host's names of those that its ranks use, or of none where that is not known."""
    share: float
    """`gpu_memory_utilization`."""
    copies: int
    """Of the engine on the same cards."""
    has_cache: bool | None
    """Whether it fills its share with a KV cache; None where the model is not known."""
    at: Span


class Tenants(NamedTuple):
    """An engine and those that share its host."""

    before: tuple[Tenant, ...]
    own: Tenant
    cards_of_later_ones: frozenset[str] | None
    """None where one of them has cards that are not known."""
