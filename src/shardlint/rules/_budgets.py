"""The sum of a GPU's memory in words, the same for every rule."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.findings import Located
from shardlint.layout import Legal
from shardlint.layout.memory import Budget
from shardlint.layout.overheads import Estimate
from shardlint.rules._words import gib, respelled

MOST_TRIED = 1024
OTHER_BUDGET = ("cpu-offload-params", "offload", "load-format", "device")
"""Flags after which the GPU holds less than the weights, by how much nobody knows, or is no GPU."""


def has_known_budget(deployment: Deployment) -> bool:
    """Whether no flag makes the sum another one."""
    return not any(name.startswith(OTHER_BUDGET) for name in deployment.engine_fields)


def larger_sizes(tp: int, dp: int, legal: Legal | None) -> Iterator[tuple[int, int]]:
    """Legal tensor parallel sizes on the same GPUs, ascending, each with the data parallel copies that are left."""
    if legal is None:
        return
    if dp == 1:
        yield from ((value, 1) for value in legal.values("tensor_parallel_size") if value > tp)
        return
    for value in range(tp + 1, min(tp * dp, MOST_TRIED) + 1):
        if tp * dp % value == 0 and legal.fits("tensor_parallel_size", value):
            yield value, tp * dp // value


def resized(tensor: Located[int], data: Located[int], tp: int, dp: int) -> str:
    """Other sizes as options; copies only where there are some."""
    copies = f" {respelled(data, dp, 'data_parallel_size')}" if data.value > 1 else ""
    return respelled(tensor, tp, "tensor_parallel_size") + copies


def budgeted(budget: Budget, share: float) -> str:
    """The budget of a GPU term by term, each that is estimated with its range."""
    if budget.stated_kv is not None:
        return f"the KV cache of each GPU is set to {gib(budget.stated_kv)}"
    total = f"{share:g} x {gib(budget.usable.likely / share)} = {gib(budget.usable.likely)}"
    terms = " - ".join(f"{name} {ranged(term)}" for name, term in budget.terms())
    return f"{total} - {terms} = {ranged(budget.kv)} GiB"


def ranged(term: Estimate) -> str:
    """`0.5 (0.3 to 2.1)`, in GiB."""
    low, likely, high = (gib(value).removesuffix(" GiB") for value in term)
    return likely if low == high else f"{likely} ({low} to {high})"
