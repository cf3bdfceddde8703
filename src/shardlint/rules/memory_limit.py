"""A limit on the host's memory that is below the weights which have to pass through it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardlint.deployment import Container, NotTold, Told
from shardlint.engines.engine import Engine
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.layout.lower_bound import LowerBound
from shardlint.layout.placement import Placement
from shardlint.rules._words import GIB, counted, gib

PROCESS_BYTES = 4 * GIB
"""Of a rank's process: libraries, the CUDA context, pinned buffers."""
ROUNDED_TO_GIB = 8


PINNED = {"vllm": (("swap_space", True), ("cpu_offload_gb", True), ("kv_offloading_size", False))}
"""By engine, the flags that keep so many GiB of the host's memory, and whether each rank does."""


def applies(container: Container) -> bool:
    return container.memory_limit is not None


def judge(
    container: Container,
    engine: Engine,
    placement: Located[Placement],
    told: Told,
    least_weights: Located[LowerBound] | None = None,
) -> Iterator[Problem | Undecided]:
    limit = container.memory_limit
    if not isinstance(limit, Located):
        if limit is not None:
            yield Undecided("memory_limit", limit)
        return
    ranks = placement.value.ranks_per_host or 1
    pinned = tuple(_pinned(limit, told, engine, ranks))
    yield from pinned
    if pinned or least_weights is None:
        return
    weights = _on_host(least_weights.value, placement.value)
    if limit.value >= weights:
        return
    needed = weights + ranks * PROCESS_BYTES
    yield Problem(
        at=limit,
        message=f"the container may use {gib(limit.value)} of the host's memory, and the weights that "
        f"{counted(ranks, 'rank')} of it read take {gib(weights)}: it is killed while it loads unless every page of "
        "the files can be dropped again",
        sum=f"{gib(limit.value)} < {gib(weights)} of weights",
        help=(f"memory: {ROUNDED_TO_GIB * math.ceil(needed / GIB / ROUNDED_TO_GIB)}Gi",),
        certainty="estimate",
    )


def _pinned(limit: Located[int], told: Told, engine: Engine, ranks: int) -> Iterator[Problem]:
    """What the flags keep in the host's memory for good, and nothing can drop."""
    kept: list[tuple[str, float]] = []
    for name, of_each_rank in PINNED.get(engine.name, ()):
        try:
            value = told.located(name)
        except NotTold:
            continue
        if value is not None and value.span is not None and isinstance(value.value, (int, float)):
            kept.append((f"--{name.replace('_', '-')}", value.value * (ranks if of_each_rank else 1)))
    total = int(sum(size for _, size in kept) * GIB)
    if total > limit.value:
        flags = " and ".join(name for name, _ in kept)
        yield Problem(
            at=limit,
            message=f"{flags} of {counted(ranks, 'rank')} keep {gib(total)} in the host's memory, and the container "
            f"may use {gib(limit.value)}: it is killed while it starts",
            sum=f"{gib(total)} > {gib(limit.value)}",
            help=(f"memory: {ROUNDED_TO_GIB * math.ceil(total / GIB / ROUNDED_TO_GIB + 1)}Gi",),
        )


def _on_host(least: LowerBound, placement: Placement) -> int:
    """The weights of the ranks that run in one container: one replica's, where it has all of one."""
    if placement.ranks_per_host is None:
        return least.fullest_rank_bytes
    return min(least.replica_bytes, least.fullest_rank_bytes * placement.ranks_per_host)


RULE = Rule(
    "SL705", "memory-limit", "host-memory", "warning", "runs-out-of-memory", judge, applies, engines=("vllm", "sglang")
)
