"""What is timed: each kind of exchange that a forward step of this model makes, at its sizes, and how speed is counted.

Factors are those of nccl-tests (doc/PERFORMANCE.md): the bus bandwidth of a collective over n ranks is its algorithm
bandwidth times the share of the data that has to cross each link, so that it can be compared with the link's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from shardlint.layout.traffic import Collective

Phase = Literal["decode", "prefill"]
Mode = Literal["alone", "together"]

PREFILL_TOKENS = 2048
"""What vLLM prefills in one step where nothing else is said."""
MOST_BYTES_ON_CPU = 2**18
"""Messages between processes of a CPU rehearsal are cut to this: their speed says nothing of the serving hosts."""


class Exchange(NamedTuple):
    """One kind of message of a step, over all groups of one class."""

    operation: str
    """all-reduce, all-gather, reduce-scatter or send."""
    kind: str
    """The class of groups."""
    purpose: str
    """Why it is made; several where messages of the same size have several."""
    phase: Phase
    tokens: int
    """Of the step."""
    times: int
    """How often the step makes it, over all stages, one after another."""
    bytes: int
    """Of one message: of an all-gather or a reduce-scatter, of all ranks together."""
    element_bytes: int = 2


class Timing(NamedTuple):
    """What one group took for one exchange: that of its slowest member, in microseconds."""

    exchange: Exchange
    group: tuple[int, ...]
    mode: Mode
    bytes: int
    """What was sent, where that is less than planned."""
    median_us: float
    p99_us: float

    @property
    def algorithm_bandwidth(self) -> float:
        """GB/s."""
        return self.bytes / self.median_us / 1e3

    @property
    def bus_bandwidth(self) -> float:
        """GB/s, to be compared with a link's."""
        return self.algorithm_bandwidth * bus_factor(self.exchange.operation, len(self.group))

    @property
    def step_ms(self) -> float:
        """Milliseconds that a step of the model spends in this exchange."""
        return self.median_us * self.exchange.times / 1e3


def bus_factor(operation: str, ranks: int) -> float:
    """What nccl-tests multiplies an algorithm bandwidth with."""
    match operation:
        case "all-reduce":
            return 2 * (ranks - 1) / ranks
        case "all-gather" | "reduce-scatter" | "all-to-all":
            return (ranks - 1) / ranks
        case _:
            return 1.0


def exchanges(
    collectives: Iterable[Collective], element_bytes: int = 2, prefill_tokens: int = PREFILL_TOKENS
) -> tuple[Exchange, ...]:
    """The messages of a decode step of one token and of a prefill step, those of all stages put together."""
    made: dict[Exchange, dict[str, int]] = {}
    for each in collectives:
        for phase, tokens in _steps(prefill_tokens):
            size = each.message_bytes(tokens, 1, element_bytes)
            key = Exchange(each.operation, each.group, "", phase, tokens, 0, size, element_bytes)
            purposes = made.setdefault(key, {})
            purposes[each.purpose] = purposes.get(each.purpose, 0) + each.count
    return tuple(
        exchange._replace(purpose=", ".join(purposes), times=sum(purposes.values()))
        for exchange, purposes in made.items()
    )


def _steps(prefill_tokens: int) -> tuple[tuple[Phase, int], ...]:
    return ("decode", 1), ("prefill", prefill_tokens)


def best_known(timings: Iterable[Timing], mode: Mode = "alone") -> Mapping[Exchange, list[Timing]]:
    """Of each exchange the timings of all groups in that mode, by themselves or at once; where there are none, in the
    other."""
    grouped = by_exchange(timings)
    other: Mode = "together" if mode == "alone" else "alone"
    exchanges = dict.fromkeys(exchange for exchange, _mode in grouped)
    return {each: grouped.get((each, mode)) or grouped[each, other] for each in exchanges}


def whole_classes(timings: Iterable[Timing], groups: Mapping[str, Sequence[tuple[int, ...]]]) -> list[Timing]:
    """The timings of those exchanges and modes of which every group of the class has one.

    A run that breaks leaves some with a part of them, of which neither the slowest nor a sum over a step can be told.
    """
    return [
        timing
        for (exchange, _mode), found in by_exchange(timings).items()
        if {timing.group for timing in found} >= set(groups.get(exchange.kind, ()))
        for timing in found
    ]


def by_exchange(timings: Iterable[Timing]) -> Mapping[tuple[Exchange, Mode], list[Timing]]:
    """The timings of all groups of a class beside each other."""
    found: dict[tuple[Exchange, Mode], list[Timing]] = {}
    for timing in timings:
        found.setdefault((timing.exchange, timing.mode), []).append(timing)
    return found
