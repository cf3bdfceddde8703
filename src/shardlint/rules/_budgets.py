"""The sum of a GPU's memory in words, the same for every rule."""

from __future__ import annotations

from shardlint.layout.memory import Budget
from shardlint.layout.overheads import Estimate
from shardlint.rules._words import gib


def budgeted(budget: Budget, share: float) -> str:
    """The budget of a GPU term by term, each that is estimated with its range."""
    total = f"{share:g} x {gib(budget.usable.likely / share)} = {gib(budget.usable.likely)}"
    terms = " - ".join(f"{name} {_ranged(term)}" for name, term in budget.terms())
    return f"{total} - {terms} = {_ranged(budget.kv)} GiB"


def _ranged(term: Estimate) -> str:
    low, likely, high = (gib(value).removesuffix(" GiB") for value in term)
    return likely if low == high else f"{likely} ({low} to {high})"
