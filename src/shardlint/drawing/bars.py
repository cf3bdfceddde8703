"""The memory of a GPU as a bar: what takes how much of it."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.findings.records import NamedTuple
from shardlint.layout.memory import Budget, Memory

GIB = 2**30
MARKS = {"weights": "#", "KV cache": "=", "activations and buffers": "+", "left free": "."}
"""The parts of a bar, and the character that stands for each in plain text."""


class Part(NamedTuple):
    name: str
    bytes: float


class Bar(NamedTuple):
    """One GPU, or all that are like it."""

    title: str
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> float:
        return sum(part.bytes for part in self.parts)


def bars(memory: Memory, stages: int) -> Iterator[Bar]:
    """One bar for each kind of rank; likely figures."""
    for budget in memory.budgets:
        stage = f"stage {budget.rank.pipeline_parallel_rank}, " if stages > 1 else ""
        yield Bar(f"{stage}rank {budget.rank.rank}", tuple(_parts(budget)))


def _parts(budget: Budget) -> Iterator[Part]:
    used = budget.activations.plus(budget.non_torch).plus(budget.graphs).likely
    yield Part("weights", budget.weights.likely)
    yield Part("activations and buffers", used)
    yield Part("KV cache", max(0.0, budget.kv.likely))
    yield Part("left free", max(0.0, budget.left_outside.likely))


def bar_lines(memory: Memory, stages: int, columns: int) -> Iterator[str]:
    """The bars in plain text, no line wider than `columns`, with a legend."""
    drawn = tuple(bars(memory, stages))
    label = max(len(bar.title) for bar in drawn)
    total = f" {max(bar.bytes for bar in drawn) / GIB:.1f} GiB"
    room = max(10, columns - label - len(total) - 3)
    largest = max(bar.bytes for bar in drawn)
    for bar in drawn:
        text = "".join(MARKS[part.name] * round(part.bytes / largest * room) for part in bar.parts)[:room]
        yield f"{bar.title:<{label}} [{text.ljust(room)}]{bar.bytes / GIB:>{len(total) - 4}.1f} GiB"
        yield " " * label + "  " + "  ".join(f"{MARKS[p.name]} {p.name} {p.bytes / GIB:.1f}" for p in bar.parts)
