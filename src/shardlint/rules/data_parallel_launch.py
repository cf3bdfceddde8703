"""Options of data parallelism that do not go together, or not with the model."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._launching import external, hybrid_wanted, local_size, several_ports
from shardlint.rules._sglang import REPLICAS

MODES = {
    "data_parallel_external_lb": "--data-parallel-external-lb",
    "data_parallel_rank": "--data-parallel-rank (external)",
    "data_parallel_hybrid_lb": "--data-parallel-hybrid-lb",
    "data_parallel_start_rank": "--data-parallel-start-rank (hybrid)",
    "data_parallel_multi_port_external_lb": "--data-parallel-multi-port-external-lb",
}


def _modes(told: Told) -> int:
    """How many ways of balancing the load the command line asks for, counted as the engine counts them."""
    several = several_ports(told)
    is_hybrid = bool(told.data_parallel_hybrid_lb)
    if not is_hybrid and not several:
        is_hybrid = told.flag("data_parallel_start_rank") is not None
    return several + external(told) + is_hybrid


def _modes_written(told: Told) -> str:
    values = {word: told.flag(name) for name, word in MODES.items()}
    return " and ".join(word for word, value in values.items() if value is not None and value is not False)


def _size(told: Told) -> int:
    return int(told.flag("data_parallel_size") or 1)


def _local_flag(told: Told) -> int | None:
    local: int | None = told.flag("data_parallel_size_local")
    return local


def _becomes_external(told: Told) -> bool:
    """External with a rank, or hybrid with one rank on this node, which is taken for external."""
    if external(told):
        return told.flag("data_parallel_rank") is not None
    return hybrid_wanted(told) and local_size(told) == 1


def _needs_rank(told: Told) -> bool:
    inferred = (told.nnodes or 1) > 1 and _size(told) > 1
    return bool(told.data_parallel_external_lb) and told.flag("data_parallel_rank") is None and not inferred


def _rank_outside(told: Told, name: str) -> bool:
    rank = told.flag(name)
    return rank is not None and not 0 <= rank < _size(told)


def _start_counts(told: Told) -> bool:
    return not external(told) and local_size(told) is not None and (_size(told) > 1 or local_size(told) == 0)


def _start_of_ports(told: Told) -> int:
    start = told.flag("data_parallel_start_rank")
    return int(told.node_rank * (_local_flag(told) or 0) if start is None else start)


CONDITIONS = (
    Condition(
        ("api_server_count", "headless"),
        lambda t: bool(t.headless) and (t.api_server_count or 0) > 0,
        lambda t: f"--headless starts no API servers, and --api-server-count asks for {t.api_server_count}",
        help=lambda t: ("leave --api-server-count out",),
        since="0.15.0",
    ),
    Condition(
        ("api_server_count", "headless"),
        lambda t: bool(t.headless) and (t.api_server_count or 0) > 1,
        lambda t: f"--headless starts no API servers, and --api-server-count asks for {t.api_server_count}",
        help=lambda t: ("leave --api-server-count out",),
        since="0.9.1",
        until="0.14.1",
    ),
    Condition(
        tuple(MODES),
        lambda t: _modes(t) > 1,
        lambda t: f"the command asks for {_modes(t)} ways of balancing the load: {_modes_written(t)}",
        help=lambda t: ("one of external, hybrid and multi-port load balancing",),
        since="0.22.0",
    ),
    Condition(
        ("data_parallel_hybrid_lb", "headless"),
        lambda t: bool(t.headless) and bool(t.data_parallel_hybrid_lb) and not external(t),
        lambda t: "--data-parallel-hybrid-lb is for nodes with an API server, and --headless starts none",
        help=lambda t: ("leave one of the two out",),
        since="0.10.0",
    ),
    Condition(
        ("data_parallel_size_local", "headless"),
        lambda t: bool(t.headless) and not external(t) and _local_flag(t) == 0,
        lambda t: "--data-parallel-size-local 0 leaves a node that is headless without any rank",
        help=lambda t: ("--data-parallel-size-local 1",),
        since="0.9.0",
    ),
    Condition(
        ("data_parallel_external_lb",),
        lambda t: _needs_rank(t),
        lambda t: (
            "--data-parallel-external-lb needs to know which data parallel rank this command is, and with "
            f"--data-parallel-size {_size(t)} and --nnodes {t.nnodes} nothing tells it"
        ),
        help=lambda t: ("--data-parallel-rank 0, and another for each further command",),
        since="0.11.1",
    ),
    Condition(
        ("data_parallel_size_local", "data_parallel_rank", "data_parallel_external_lb"),
        lambda t: not several_ports(t) and external(t) and local_size(t) not in (1, None),
        lambda t: (
            "with external load balancing one command is one data parallel rank, and this node would have "
            f"{local_size(t)}"
        ),
        help=lambda t: ("--data-parallel-size-local 1",),
        since="0.9.2",
    ),
    Condition(
        ("data_parallel_hybrid_lb",),
        lambda t: bool(t.data_parallel_hybrid_lb) and not external(t) and local_size(t) is None,
        lambda t: "--data-parallel-hybrid-lb needs --data-parallel-size-local, the number of ranks on this node",
        help=lambda t: (f"--data-parallel-size-local {_size(t)}",),
        since="0.10.0",
    ),
    Condition(
        ("data_parallel_size_local", "data_parallel_size"),
        lambda t: not external(t) and _local_flag(t) is not None and (_local_flag(t) or 0) > _size(t),
        lambda t: f"{_local_flag(t)} data parallel ranks on this node are more than the {_size(t)} that there are",
        sum=lambda t: f"{_local_flag(t)} local > DP {_size(t)}",
        help=lambda t: (f"--data-parallel-size {_local_flag(t)}", f"--data-parallel-size-local {_size(t)}"),
        since="0.10.0",
    ),
    Condition(
        ("data_parallel_rank", "data_parallel_external_lb", "data_parallel_hybrid_lb", "data_parallel_start_rank"),
        lambda t: _size(t) <= 1 and _becomes_external(t),
        lambda t: f"external load balancing is for several data parallel ranks, and there is {_size(t)}",
        sum=lambda t: f"DP {_size(t)}; more than 1 is needed",
        help=lambda t: ("--data-parallel-size 2 or more, the same in every command", "no --data-parallel-* options"),
        since="0.11.1",
    ),
    Condition(
        ("data_parallel_rank", "data_parallel_size"),
        lambda t: _size(t) > 1 and external(t) and _rank_outside(t, "data_parallel_rank"),
        lambda t: f"data parallel rank {t.data_parallel_rank} is not among the ranks 0 to {_size(t) - 1}",
        sum=lambda t: f"rank {t.data_parallel_rank}, DP {_size(t)}",
        since="0.9.2",
    ),
    Condition(
        ("data_parallel_start_rank", "data_parallel_size"),
        lambda t: _start_counts(t) and _rank_outside(t, "data_parallel_start_rank"),
        lambda t: f"data parallel rank {t.data_parallel_start_rank} is not among the ranks 0 to {_size(t) - 1}",
        sum=lambda t: f"first rank {t.data_parallel_start_rank}, DP {_size(t)}",
        since="0.11.1",
    ),
    Condition(
        ("data_parallel_external_lb", "data_parallel_rank", "data_parallel_size"),
        lambda t: _size(t) > 1 and external(t) and not several_ports(t) and t.num_experts == 0,
        lambda t: (
            f"the model has {t.num_experts} experts, so its {_size(t)} data parallel ranks share nothing, and external "
            "load balancing is only for models with experts"
        ),
        help=lambda t: ("independent servers without any --data-parallel-* option",),
        since="0.21.0",
    ),
    Condition(
        ("data_parallel_size",),
        lambda t: (
            t.variable("VLLM_DP_SIZE").isdigit()
            and int(t.variable("VLLM_DP_SIZE")) > 1
            and _size(t) == 1
            and _local_flag(t) != 0
            and t.num_experts == 0
        ),
        lambda t: (
            f"VLLM_DP_SIZE is {t.variable('VLLM_DP_SIZE')}, and the model has {t.num_experts} experts: "
            "data parallelism by variables is only for models with experts"
        ),
        help=lambda t: (f"--data-parallel-size {t.variable('VLLM_DP_SIZE')}",),
        since="0.14.0",
    ),
    Condition(
        ("enable_fault_tolerance",),
        lambda t: bool(t.enable_fault_tolerance) and not external(t),
        lambda t: "--enable-fault-tolerance is only for external load balancing",
        help=lambda t: ("--data-parallel-rank with the rank of this command",),
        since="0.33.0",
    ),
    Condition(
        ("api_server_count", "data_parallel_multi_port_external_lb"),
        lambda t: several_ports(t) and t.api_server_count not in (None, 1) and not t.headless,
        lambda t: (
            "--data-parallel-multi-port-external-lb starts one API server for each rank, and --api-server-count asks "
            f"for {t.api_server_count}"
        ),
        help=lambda t: ("leave --api-server-count out",),
        since="0.33.0",
    ),
    Condition(
        ("data_parallel_multi_port_external_lb", "data_parallel_size"),
        lambda t: several_ports(t) and _modes(t) == 1 and _size(t) < 2,
        lambda t: f"--data-parallel-multi-port-external-lb is for several data parallel ranks, and there is {_size(t)}",
        help=lambda t: ("--data-parallel-size 2 or more",),
        since="0.33.0",
    ),
    Condition(
        ("data_parallel_multi_port_external_lb", "data_parallel_size_local"),
        lambda t: several_ports(t) and _modes(t) == 1 and (_local_flag(t) or 0) < 2,
        lambda t: (
            "--data-parallel-multi-port-external-lb is for several ranks on a node, and --data-parallel-size-local is "
            f"{'not set' if _local_flag(t) is None else _local_flag(t)}"
        ),
        help=lambda t: ("--data-parallel-size-local 2 or more",),
        since="0.33.0",
    ),
    Condition(
        ("data_parallel_size_local", "data_parallel_size"),
        lambda t: several_ports(t) and _modes(t) == 1 and _size(t) % (_local_flag(t) or 1) != 0,
        lambda t: (
            f"the {_size(t)} data parallel ranks do not divide by the {_local_flag(t)} of a node with "
            "--data-parallel-multi-port-external-lb"
        ),
        sum=lambda t: f"{_size(t)} % {_local_flag(t)} = {_size(t) % (_local_flag(t) or 1)}",
        since="0.33.0",
    ),
    Condition(
        ("data_parallel_start_rank", "node_rank", "data_parallel_size"),
        lambda t: (
            several_ports(t)
            and _modes(t) == 1
            and 2 <= (_local_flag(t) or 0) <= _size(t)
            and _start_of_ports(t) + (_local_flag(t) or 0) > _size(t)
        ),
        lambda t: (
            f"the ranks of this node would be {_start_of_ports(t)} to {_start_of_ports(t) + (_local_flag(t) or 0) - 1}"
            f", and there are 0 to {_size(t) - 1}"
        ),
        sum=lambda t: f"{_start_of_ports(t)} + {_local_flag(t)} > DP {_size(t)}",
        since="0.33.0",
    ),
)


def applies(deployment: Deployment) -> bool:
    """A controller that spreads the ranks over pods gives each its part by flags of its own."""
    return not deployment.server.primary.is_spread


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(REPLICAS if engine.name == "sglang" else CONDITIONS, told, engine, engine_version)


RULE = Rule(
    "SL301",
    "data-parallel-launch",
    "dp-semantics",
    "error",
    "refuses-at-start",
    judge,
    applies,
    engines=("vllm", "sglang"),
)
