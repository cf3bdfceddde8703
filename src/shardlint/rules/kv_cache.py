"""A KV cache that does not hold one request of the full length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from shardlint.deployment import Deployment
from shardlint.facts import Accelerator
from shardlint.findings import Located, Maybe, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.layout.memory import Budget, Memory
from shardlint.layout.overheads import Estimate
from shardlint.rules._budgets import budgeted, has_known_budget, larger_sizes, resized
from shardlint.rules._words import gib, respelled

STATED_BY = ("num-gpu-blocks-override", "kv-cache-memory-bytes")
"""Flags that give the cache its size; the first one wins."""
ROUND_LENGTH = 1024
MOST_SIZES_TRIED = 6


def applies(layout: Layout, deployment: Deployment) -> bool:
    """A layout that the engine refuses has no ranks whose memory could be asked for."""
    return layout.refused is None and has_known_budget(deployment)


def judge(
    memory: Located[Memory],
    context_length: Located[int],
    accelerators: Located[tuple[Accelerator, ...]],
    tensor_parallel_size: Located[int],
    gpu_memory_utilization: Located[float],
    data_parallel_size: Located[int],
    memory_at: Callable[[int, int], Maybe[Memory]],
    deployment: Deployment,
    max_model_len: Located[int] | None = None,
    legal: Legal | None = None,
) -> Iterator[Problem]:
    tightest, length, share = memory.value.tightest(), context_length.value, gpu_memory_utilization.value
    needed = tightest.needed(length)
    if needed <= tightest.kv.likely or not needed or _weights_are_too_many(tightest, share, accelerators.value):
        return
    certain = tightest.kv.high < needed
    flag = next((name for name in STATED_BY if name in deployment.engine_fields), None)
    size = deployment.engine_fields[flag] if flag is not None else None
    larger = _larger_layout(tensor_parallel_size, data_parallel_size, memory_at, legal)
    advice = (*_shorter(memory.value, max_model_len), *larger)
    yield Problem(
        at=max_model_len or (size if isinstance(size, Located) else tensor_parallel_size),
        message=_message(tightest.kv, needed, length, certain, flag),
        sum=budgeted(tightest, share),
        help=advice if flag is None else (f"--{STATED_BY[-1]} {needed}", *advice),
        related=(
            (None if max_model_len else context_length, "the model's own length, as none is written"),
            (accelerators, f"{accelerators.value[0].name}: {gib(accelerators.value[0].memory_bytes or 0)}"),
            (gpu_memory_utilization if flag is None else None, f"vLLM may use {share:g} of it"),
        ),
        severity="error" if certain else "warning",
        certainty="estimate" if flag is None else "exact",
    )


def _weights_are_too_many(budget: Budget, share: float, cards: tuple[Accelerator, ...]) -> bool:
    """Whether it is the weights alone, which is another rule's finding."""
    return (budget.rank.weight_bytes or 0) >= share * max(card.memory_bytes or 0 for card in cards)


def _message(kept: Estimate, needed: int, length: int, certain: bool, flag: str | None) -> str:
    asked = f"a request of {length} tokens needs {gib(needed)} of KV cache"
    if flag is not None:
        return f"{asked}, and --{flag} gives it {gib(kept.likely)}: it runs out of memory"
    left = f"about {gib(kept.likely)} of a GPU" if kept.likely > 0 else "nothing"
    most = f", {gib(kept.high)} at most," if kept.high > 0 else ""
    ends = "it runs out of memory" if certain else "it probably runs out of memory"
    return f"{asked}, and {left}{most} is left for it: {ends}"


def _shorter(memory: Memory, written: Located[int] | None) -> Iterator[str]:
    """The longest request that fits, by the low estimate where that holds one."""
    fits = memory.longest()
    for length in (fits.low, fits.likely):
        if length >= ROUND_LENGTH:
            yield respelled(written, int(length) // ROUND_LENGTH * ROUND_LENGTH, "max_model_len")
            break


def _larger_layout(
    tensor: Located[int], data: Located[int], memory_at: Callable[[int, int], Maybe[Memory]], legal: Legal | None
) -> Iterator[str]:
    """The smallest tensor parallel size on the same GPUs that likely holds the request."""
    for tp, dp in islice(larger_sizes(tensor.value, data.value, legal), MOST_SIZES_TRIED):
        there = memory_at(tp, dp)
        if isinstance(there, Located) and _holds(there.value):
            yield resized(tensor, data, tp, dp)
            break


def _holds(memory: Memory) -> bool:
    tightest = memory.tightest()
    return tightest.kv.likely >= tightest.needed(memory.max_model_len)


RULE = Rule("SL702", "kv-cache", "mem-kv", "error", "runs-out-of-memory", judge, applies)
