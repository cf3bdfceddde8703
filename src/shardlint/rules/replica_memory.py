"""Weights that do not fit the GPUs of one replica."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.facts import Accelerator
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.layout.lower_bound import LowerBound
from shardlint.layout.memory import Memory
from shardlint.rules._budgets import budgeted, larger_sizes, resized
from shardlint.rules._words import counted, gib

WEIGHTS_ELSEWHERE = ("cpu-offload", "offload", "kv-cache-memory-bytes", "load-format")
"""Flags after which the GPU holds less than the weights, or the budget is another."""


def applies(world_size: Located[int], deployment: Deployment) -> bool:
    elsewhere = any(name.startswith(WEIGHTS_ELSEWHERE) for name in deployment.engine_fields)
    return world_size.value > 0 and not elsewhere


def judge(
    accelerators: Located[tuple[Accelerator, ...]],
    least_weights: Located[LowerBound],
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int],
    data_parallel_size: Located[int],
    world_size: Located[int],
    gpu_memory_utilization: Located[float],
    legal: Legal | None = None,
    memory: Located[Memory] | None = None,
    context_length: Located[int] | None = None,
) -> Iterator[Problem]:
    memories = [card.memory_bytes for card in accelerators.value if card.memory_bytes]
    least, share = least_weights.value, gpu_memory_utilization.value
    if not memories or len(memories) < len(accelerators.value) or not 0 < share <= 1:
        return
    usable = share * max(memories)
    if least.fullest_rank_bytes < usable:
        if memory is not None:
            yield from _too_tight(memory.value, context_length, tensor_parallel_size, share)
        return
    dp = data_parallel_size.value
    outer = (size for size in (data_parallel_size, pipeline_parallel_size) if size.value > 1)
    yield Problem(
        at=next(outer, tensor_parallel_size),
        message=_message(least, usable, dp, world_size.value),
        sum=f"{gib(least.fullest_rank_bytes)} of weights > {share:g} x {gib(max(memories))} = {gib(usable)}",
        help=tuple(_advice(least, usable, tensor_parallel_size, data_parallel_size, world_size.value, legal)),
        related=(
            (accelerators, f"{accelerators.value[0].name}: {gib(max(memories))}"),
            (gpu_memory_utilization, f"vLLM may use {share:g} of it"),
        ),
    )


def _too_tight(
    memory: Memory, context_length: Located[int] | None, size: Located[int], share: float
) -> Iterator[Problem]:
    """Weights that fit with too little beside them, where no request of a known length tells as much."""
    tightest = memory.tightest()
    asks_for_cache = context_length is not None and tightest.needed(context_length.value) > 0
    if asks_for_cache or tightest.kv.likely >= 0:
        return
    certain = tightest.kv.high < 0
    weights, usable = gib(tightest.weights.likely), gib(tightest.usable.likely)
    ends = "it runs out of memory" if certain else "it probably runs out of memory"
    yield Problem(
        at=size,
        message=f"{weights} of weights leave too little of {usable} of a GPU for activations and a cache: {ends}",
        sum=budgeted(tightest, share),
        severity="error" if certain else "warning",
        certainty="estimate",
    )


def _message(least: LowerBound, usable: float, dp: int, gpus: int) -> str:
    who = f"each of the {dp} data parallel replicas" if dp > 1 else "the model"
    basis = "" if least.exact else f" (from {least.basis})"
    fullest = f", {gib(least.fullest_rank_bytes)} of them on the fullest of its {gpus} GPUs" if gpus > 1 else ""
    return (
        f"{who} needs at least {gib(least.replica_bytes)} for its weights{basis}{fullest}, and vLLM may use "
        f"{gib(usable)} of a GPU: it runs out of memory"
    )


def _advice(
    least: LowerBound,
    usable: float,
    tensor: Located[int],
    data: Located[int],
    gpus: int,
    legal: Legal | None,
) -> Iterator[str]:
    needed = int(least.replica_bytes / usable) + 1
    other_factors = max(gpus // tensor.value, 1)
    for tp, dp in larger_sizes(tensor.value, data.value, legal):
        if tp * other_factors >= needed:
            yield resized(tensor, data, tp, dp)
            break
    yield f"at least {counted(needed, 'GPU')} of this kind for one replica"
    if data.value > 1:
        yield "more data parallel replicas never help: each holds all weights but those of experts"


RULE = Rule("SL701", "replica-memory", "mem-weights", "error", "runs-out-of-memory", judge, applies)
