"""How vLLM 0.33.0 understands the options that launch data parallel ranks (`engine/arg_utils.py:2381-2530`)."""

from __future__ import annotations

from shardlint.deployment import Told


def several_ports(told: Told) -> bool:
    """Whether one command supervises a server on a port of its own for each rank of the node."""
    return bool(told.data_parallel_multi_port_external_lb)


def external(told: Told) -> bool:
    """Whether one command is one rank, with the load balanced outside; a rank alone says so too."""
    return bool(told.data_parallel_external_lb) or told.flag("data_parallel_rank") is not None


def hybrid_wanted(told: Told) -> bool:
    """Whether each node balances over its own ranks; a first rank alone says so too, save on a headless node."""
    return bool(told.data_parallel_hybrid_lb) or (
        told.flag("data_parallel_start_rank") is not None and not told.headless
    )


def replica_size(told: Told) -> int:
    """Ranks of one replica: TP x PP x PCP."""
    size = told.tensor_parallel_size * told.pipeline_parallel_size
    return int(size * (told.prefill_context_parallel_size or 1))


def ranks(told: Told) -> int:
    """Ranks of the whole server: DP x TP x PP x PCP."""
    return int(told.flag("data_parallel_size") or 1) * replica_size(told)


def local_size(told: Told) -> int | None:
    """Data parallel ranks of this node as written, else as `--nnodes` tells; None where neither does."""
    local = told.flag("data_parallel_size_local")
    if local is not None:
        return int(local)
    is_one_rank = told.data_parallel_external_lb and told.flag("data_parallel_size") not in (None, 1)
    if (told.nnodes or 1) <= 1 or is_one_rank:
        return None
    return int(max(ranks(told) // told.nnodes // replica_size(told), 1))


def microbatches(told: Told) -> int:
    """Parts that a batch is cut into, 0 or 1 for none."""
    return 2 if told.enable_dbo else int(told.ubatch_size or 0)
