"""A layout that needs more GPUs than it is given."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator
from shardlint.findings import Effect, Located, Problem, Rule, Severity
from shardlint.findings.records import NamedTuple
from shardlint.layout import Legal
from shardlint.layout.placement import Placement
from shardlint.layout.sizes import DEGREES, Degree
from shardlint.rules._ray import TOOK_RAY_UNTIL, needs_ray, on_default_executor
from shardlint.rules._words import SHORT, counted, named, product, respelled

OTHER_PLATFORMS = frozenset(("google", "aws", "intel"))
"""Vendors on whose platforms vLLM finds its devices in another way (TPU slices, Neuron cores, Gaudi)."""

ANY_NUMBER_OF_NODES = Located(1, origin="default")
"""Nobody says how many nodes there are."""


class Shortage(NamedTuple):
    """What is missing: `needed` GPUs in a place that has `there`, and what the engine does about it."""

    needed: int
    there: int
    sizes: tuple[tuple[str, int], ...]
    where: str
    outcome: str
    effect: Effect
    severity: Severity = "error"
    hosts: int = 0
    """Nodes that together have enough, where the engine looks at one of them because nobody chose an executor."""


def applies(world_size: Located[int]) -> bool:
    return world_size.value > 0


def judge(
    placement: Located[Placement],
    gpus_per_node: Located[int],
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int],
    data_parallel_size: Located[int],
    prefill_context_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    nodes: Located[int] = ANY_NUMBER_OF_NODES,
    accelerators: Located[tuple[Accelerator, ...]] | None = None,
    legal: Legal | None = None,
    data_parallel_size_local: Located[int] | None = None,
    ray_starts: tuple[Launch, ...] = (),
) -> Iterator[Problem]:
    degrees: dict[Degree, Located[int]] = {
        "tensor_parallel_size": tensor_parallel_size,
        "pipeline_parallel_size": pipeline_parallel_size,
        "data_parallel_size": data_parallel_size,
        "prefill_context_parallel_size": prefill_context_parallel_size,
    }
    vendors = {card.vendor for card in accelerators.value} if accelerators is not None else set()
    if vendors & OTHER_PLATFORMS:
        return
    if gpus_per_node.value == 0 and placement.value.ranks == 1:
        return  # a build for processors without GPUs says so by asking for none
    is_cuda = "amd" not in vendors
    if ray_starts and is_cuda and needs_ray(placement.value, gpus_per_node.value, engine_version.value):
        return  # SL811 says so
    shortage = _shortage(placement.value, gpus_per_node, nodes, degrees, engine_version.value, is_cuda)
    if shortage is None:
        return
    at = _to_blame(degrees, shortage)
    of_node = data_parallel_size_local if at == "data_parallel_size" and placement.value.replicas_per_host else None
    yield Problem(
        at=of_node or degrees[at],
        message=f"the layout needs {counted(shortage.needed, 'GPU')} {shortage.where} "
        f"{shortage.there if shortage.there else 'none'}: {named(engine, engine_version)} {shortage.outcome}",
        sum=f"{product(*shortage.sizes)}{'' if shortage.sizes else shortage.needed} > {counted(shortage.there, 'GPU')}",
        help=tuple(_advice(at, degrees, shortage, gpus_per_node, legal)),
        related=(
            (gpus_per_node, f"{counted(gpus_per_node.value, 'GPU')} here"),
            *((size, f"{SHORT[name]} {size.value}") for name, size in degrees.items() if name != at and size.value > 1),
        ),
        severity=shortage.severity,
        effect=shortage.effect,
    )


def _shortage(
    placement: Placement,
    gpus: Located[int],
    nodes: Located[int],
    degrees: dict[Degree, Located[int]],
    version: Version,
    is_cuda: bool,
) -> Shortage | None:
    sizes = tuple((SHORT[name], degrees[name].value) for name in DEGREES)
    replica = tuple(size for size in sizes if size[0] != SHORT["data_parallel_size"])
    there = gpus.value
    if is_cuda and on_default_executor(placement) and placement.replica_size > there:
        if version <= TOOK_RAY_UNTIL:
            return _of_ray(placement, gpus, nodes, sizes) or _unsaid_ray(placement, there, replica, nodes)
        enough = nodes.origin != "default" and placement.replica_size <= there * nodes.value
        return Shortage(
            placement.replica_size, there, replica, "on one node, which has", "refuses to start", "refuses-at-start",
            hosts=nodes.value if enough else 0,
        )  # fmt: skip
    if placement.ranks_per_host is None:
        return _of_ray(placement, gpus, nodes, sizes) if placement.executor == "ray" else None
    if placement.ranks_per_host > there:
        return Shortage(
            placement.ranks_per_host, there, _on_host(placement, degrees, sizes), "on each node, which has",
            "stops its workers before they load: DP adjusted local rank out of bounds", "fails-while-loading",
        )  # fmt: skip
    return _too_few_nodes(placement, gpus, nodes, sizes)


def _on_host(
    placement: Placement, degrees: dict[Degree, Located[int]], sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """The factors of the ranks of one host."""
    if placement.replicas_per_host is None:
        return (("ranks of a node", placement.ranks_per_host or 0),)
    return (("DP on this node", placement.replicas_per_host), *sizes[1:])


def _of_ray(
    placement: Placement, gpus: Located[int], nodes: Located[int], sizes: tuple[tuple[str, int], ...]
) -> Shortage | None:
    """Ray waits for GPUs that the cluster does not have; a cluster that nobody describes may have them."""
    cluster = gpus.value * nodes.value
    if nodes.origin == "default" or placement.ranks <= cluster:
        return None
    where = f"and the {counted(nodes.value, 'node')} of {gpus.value} have"
    return Shortage(placement.ranks, cluster, sizes, where, "waits for a Ray placement group that never comes", "hangs")


def _unsaid_ray(
    placement: Placement, there: int, replica: tuple[tuple[str, int], ...], nodes: Located[int]
) -> Shortage | None:
    if nodes.origin != "default":
        return None
    outcome = "turns to Ray by itself and waits until a Ray cluster has as many"
    return Shortage(placement.replica_size, there, replica, "and this node has", outcome, "hangs", "warning")


def _too_few_nodes(
    placement: Placement, gpus: Located[int], nodes: Located[int], sizes: tuple[tuple[str, int], ...]
) -> Shortage | None:
    if nodes.origin == "default" or nodes.value >= placement.nnodes:
        return None
    where = f"over {placement.nnodes} nodes, and the {counted(nodes.value, 'pod')} that there are have"
    outcome = f"waits for the other {placement.nnodes - nodes.value}"
    return Shortage(placement.ranks, gpus.value * nodes.value, sizes, where, outcome, "hangs")


def _to_blame(degrees: dict[Degree, Located[int]], shortage: Shortage) -> Degree:
    """The degree that has to shrink: TP where it alone is too many, else the outermost one that is written."""
    if degrees["tensor_parallel_size"].value > shortage.there:
        return "tensor_parallel_size"
    names = {name for name, _ in shortage.sizes}
    outer = [name for name in DEGREES if degrees[name].value > 1 and _counts(name, names)]
    return next(iter(outer), "tensor_parallel_size")


def _counts(degree: Degree, names: set[str]) -> bool:
    return any(name.startswith(SHORT[degree]) for name in names) or "ranks of a node" in names


def _advice(
    at: Degree,
    degrees: dict[Degree, Located[int]],
    shortage: Shortage,
    gpus: Located[int],
    legal: Legal | None,
) -> Iterator[str]:
    if shortage.hosts:
        yield f"--distributed-executor-backend ray, where the {shortage.hosts} nodes are one Ray cluster"
        yield f"--nnodes {shortage.hosts}, with a --node-rank on each node and the --master-addr of the first"
    size = degrees[at]
    others = max(shortage.needed // max(size.value, 1), 1)
    most = shortage.there // others
    if most >= 1:
        fitting = legal.values(at) if legal is not None and at == "tensor_parallel_size" else (most,)
        best = max((value for value in fitting if value <= most), default=0)
        if best:
            yield respelled(size, best, at)
    if gpus.spelled and gpus.origin == "written" and not gpus.spelled.strip("\"'").isdigit():
        yield f"{shortage.needed} GPUs instead of {gpus.spelled}"
    else:
        yield f"{shortage.needed} GPUs"


RULE = Rule("SL801", "world-size", "world-vs-gpus", "error", "refuses-at-start", judge, applies)
