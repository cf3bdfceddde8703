"""GPUs that are reserved and that no rank uses."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.layout.placement import Placement
from shardlint.layout.sizes import DEGREES, Degree
from shardlint.rules._words import FLAGS, SHORT, counted, product, respelled


def applies(world_size: Located[int], engines_beside: tuple[Deployment, ...], deployment: Deployment) -> bool:
    return world_size.value > 0 and not engines_beside and not deployment.server.primary.shares_pods


def judge(
    placement: Located[Placement],
    gpus_per_node: Located[int],
    nodes: Located[int],
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int],
    data_parallel_size: Located[int],
    prefill_context_parallel_size: Located[int],
    data_parallel_rank: Located[int] | None = None,
    legal: Legal | None = None,
) -> Iterator[Problem]:
    if data_parallel_rank is not None:  # the ranks of the other commands may run on the same GPUs
        return
    degrees: dict[Degree, Located[int]] = {
        "tensor_parallel_size": tensor_parallel_size,
        "pipeline_parallel_size": pipeline_parallel_size,
        "data_parallel_size": data_parallel_size,
        "prefill_context_parallel_size": prefill_context_parallel_size,
    }
    hosts, reserved = _reserved(placement.value, gpus_per_node.value, nodes)
    used = _used(placement.value, hosts)
    if used < 1 or used >= reserved:
        return
    whole_nodes = hosts > 1 and used <= gpus_per_node.value
    sizes = [(SHORT[name], degrees[name].value) for name in DEGREES]
    there = counted(reserved, "GPU") if hosts == 1 else f"{hosts} nodes of {gpus_per_node.value} GPUs = {reserved}"
    yield Problem(
        at=nodes if whole_nodes and nodes.span is not None else gpus_per_node,
        message=f"{counted(used, 'GPU')} of {reserved} {'is' if used == 1 else 'are'} used: the layout has "
        f"{counted(used, 'rank')}, and {counted(reserved - used, 'GPU')} will be idle",
        sum=f"{there} - {counted(used, 'rank')} ({product(*sizes)}) = {reserved - used} idle",
        help=tuple(_advice(placement.value, degrees, reserved, used, legal)),
        related=tuple((size, f"{SHORT[name]} {size.value}") for name, size in degrees.items()),
        severity="note" if gpus_per_node.origin == "given" else "warning",
    )


def _reserved(placement: Placement, gpus: int, nodes: Located[int]) -> tuple[int, int]:
    """Hosts and GPUs that are there for certain. A Ray cluster that nobody describes counts as the one node."""
    hosts = nodes.value
    if nodes.origin == "default" and placement.hosts is not None:
        hosts = placement.hosts if placement.nnodes > 1 else 1
    return hosts, hosts * gpus


def _used(placement: Placement, hosts: int) -> int:
    """Ranks that run on those hosts."""
    if placement.ranks_per_host is None:
        return placement.ranks
    return min(placement.ranks, placement.ranks_per_host * hosts)


def _advice(
    placement: Placement, degrees: dict[Degree, Located[int]], reserved: int, used: int, legal: Legal | None
) -> Iterator[str]:
    tp = degrees["tensor_parallel_size"]
    if legal is not None and used:
        all_used = tp.value * (reserved // used)
        if reserved % used == 0 and legal.fits("tensor_parallel_size", all_used):
            yield respelled(tp, all_used, "tensor_parallel_size")
    if reserved % used == 0 and degrees["data_parallel_size"].value == 1:
        yield f"{FLAGS['data_parallel_size']} {reserved // used}: as many copies, if each fits its GPUs"
    yield f"reserve {counted(used, 'GPU')}"


RULE = Rule("SL802", "idle-gpus", "world-vs-gpus", "warning", "wastes", judge, applies)
