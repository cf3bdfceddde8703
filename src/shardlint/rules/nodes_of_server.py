"""Numbers of nodes and node ranks that do not fit the layout."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._launching import external, local_size, ranks
from shardlint.rules._sglang import NODES
from shardlint.rules._words import counted, listed

MOST_TRIED = 64
"""Numbers of nodes among which other ones are looked for."""

OWN_PROCESSES = ("mp", "uni", "external_launcher")
"""Executors that start their workers themselves on every node."""


def _several(told: Told) -> bool:
    return (told.nnodes or 1) > 1


def _size(told: Told) -> int:
    return int(told.flag("data_parallel_size") or 1)


def _even(told: Told) -> Iterator[str]:
    """Numbers of nodes, up to the one written, over which the ranks divide."""
    most = min(told.nnodes, MOST_TRIED)
    fitting = [nodes for nodes in range(most, 0, -1) if ranks(told) % nodes == 0]
    yield from (f"--nnodes {nodes}" for nodes in fitting[:2])


def _groups(told: Told) -> int:
    """Nodes that a data parallel size is cut into."""
    return _size(told) // (local_size(told) or _size(told))


def _groups_uneven(told: Told) -> bool:
    counted = _several(told) and not external(told) and ranks(told) % told.nnodes == 0
    return counted and _groups(told) > 0 and told.nnodes % _groups(told) != 0


CONDITIONS = (
    Condition(
        ("nnodes", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
        lambda t: _several(t) and ranks(t) % t.nnodes != 0,
        lambda t: f"the {counted(ranks(t), 'rank')} (DP x TP x PP x PCP) cannot be shared evenly by {t.nnodes} nodes",
        sum=lambda t: f"{counted(ranks(t), 'rank')} % {t.nnodes} nodes = {ranks(t) % t.nnodes}",
        help=_even,
        since="0.11.1",
    ),
    Condition(
        ("node_rank", "nnodes"),
        lambda t: _several(t) and not 0 <= t.node_rank < t.nnodes,
        lambda t: f"node rank {t.node_rank} is not among the ranks 0 to {t.nnodes - 1} of {t.nnodes} nodes",
        sum=lambda t: f"node rank {t.node_rank}, {t.nnodes} nodes",
        help=lambda t: (f"--node-rank {t.nnodes - 1} for the last node",),
        since="0.33.0",
    ),
    Condition(
        ("nnodes", "data_parallel_size_local", "data_parallel_size"),
        _groups_uneven,
        lambda t: (
            f"{t.nnodes} nodes do not divide by the {_groups(t)} groups of {local_size(t)} that the {_size(t)} data "
            "parallel ranks make"
        ),
        sum=lambda t: f"{t.nnodes} nodes % ({_size(t)} / {local_size(t)}) = {t.nnodes % _groups(t)}",
        since="0.13.0",
    ),
    Condition(
        ("data_parallel_external_lb", "nnodes", "data_parallel_size"),
        lambda t: (
            _several(t)
            and bool(t.data_parallel_external_lb)
            and t.flag("data_parallel_rank") is None
            and _size(t) > 1
            and t.nnodes % _size(t) != 0
        ),
        lambda t: (
            f"the node rank does not tell the data parallel rank, for {t.nnodes} nodes do not divide by "
            f"{_size(t)} data parallel ranks"
        ),
        sum=lambda t: f"{t.nnodes} nodes % DP {_size(t)} = {t.nnodes % _size(t)}",
        help=lambda t: ("--data-parallel-rank in every command",),
        since="0.33.0",
    ),
    Condition(
        ("data_parallel_backend", "nnodes"),
        lambda t: _several(t) and t.data_parallel_backend not in (None, "mp"),
        lambda t: f"--nnodes {t.nnodes} is for the data parallel backend mp, and it is {t.data_parallel_backend}",
        help=lambda t: ("--data-parallel-backend mp", "leave --nnodes out, and let Ray find the nodes"),
        since="0.13.0",
    ),
    Condition(
        ("distributed_executor_backend", "nnodes"),
        lambda t: (
            _several(t)
            and t.distributed_executor_backend is not None
            and t.distributed_executor_backend not in OWN_PROCESSES
        ),
        lambda t: (
            f"--nnodes {t.nnodes} is for the executors {listed(OWN_PROCESSES)}, and the one chosen is "
            f"{t.distributed_executor_backend}"
        ),
        help=lambda t: ("leave --nnodes, --node-rank and --master-addr out", "--distributed-executor-backend mp"),
        since="0.11.1",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(NODES if engine.name == "sglang" else CONDITIONS, told, engine, engine_version)


RULE = Rule(
    "SL804", "nodes-of-server", "multinode-args", "error", "refuses-at-start", judge, engines=("vllm", "sglang")
)
