"""A share of the GPU that leaves too little for what the engine needs beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.layout.memory import Budget, Memory
from shardlint.rules._budgets import has_known_budget, ranged
from shardlint.rules._words import gib

SIZE_OF_CACHE = "kv-cache-memory-bytes"


def applies(layout: Layout, deployment: Deployment) -> bool:
    return layout.refused is None and has_known_budget(deployment)


def judge(memory: Located[Memory], gpu_memory_utilization: Located[float], deployment: Deployment) -> Iterator[Problem]:
    budget = min(memory.value.budgets, key=_spare)
    if _spare(budget) >= 0 or budget.kv.likely < 0:
        return
    certain = budget.left_outside.high < budget.outside.low
    stated = deployment.engine_fields.get(SIZE_OF_CACHE) if budget.stated_kv is not None else None
    size = stated if isinstance(stated, Located) else None
    share = gpu_memory_utilization.value
    asked = f"a gpu_memory_utilization of {share:g}" if size is None else f"a KV cache of {gib(budget.kv.likely)}"
    yield Problem(
        at=size or gpu_memory_utilization,
        message=f"{asked} leaves {gib(max(budget.left_outside.likely, 0))} of a GPU, and the engine needs about "
        f"{gib(budget.outside.likely)} beside it: it {'' if certain else 'probably '}runs out of memory",
        sum=_sum(budget, share),
        help=tuple(_advice(budget, size)),
        severity="error" if certain else "warning",
        certainty="estimate",
    )


def _spare(budget: Budget) -> float:
    return budget.left_outside.likely - budget.outside.likely


def _sum(budget: Budget, share: float) -> str:
    card, needed = gib(budget.card.likely), f"{ranged(budget.outside)} GiB for its context, CUDA graphs and warm-up"
    if budget.stated_kv is None:
        return f"{card} x (1 - {share:g}) = {gib(budget.left_outside.likely)} < {needed}"
    taken = budget.card.likely - budget.left_outside.likely
    return f"{card} - {gib(taken)} of weights, activations and cache = {gib(budget.left_outside.likely)} < {needed}"


def _advice(budget: Budget, size: Located[int] | None) -> Iterator[str]:
    if size is not None:
        fits = int(budget.kv.likely + _spare(budget))
        if fits > 0:
            yield f"--{SIZE_OF_CACHE} {fits}"
        return
    share = math.floor(100 * (1 - budget.outside.likely / budget.card.likely)) / 100
    if share > 0:
        yield f"--gpu-memory-utilization {share:g}"
    yield "a smaller --max-num-seqs: the warm-up of the sampler follows it"


RULE = Rule("SL704", "no-headroom", "mem-kv", "warning", "runs-out-of-memory", judge, applies)
