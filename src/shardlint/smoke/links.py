"""What is to be said of the timings: which group falls behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from shardlint.smoke.exchanges import Exchange, Timing, best_known
from shardlint.smoke.observations import Observation

GROSS = 8.0
"""A group that takes so many times the median of the others is out of line even by CPU's noise, which is 3 to 5."""
ODD = 1 / 0.7
"""On GPUs a group is odd from 0.7 of the others' bandwidth down."""
LEAST_LATE_US = 20_000
"""On CPUs a process that is not scheduled loses some milliseconds by that alone."""
LEAST_BYTES = 2**16
"""Smaller messages measure latency, which differs from class to class by the number of members."""


def link_observations(timings: Sequence[Timing], on_gpus: bool) -> Iterator[Observation]:
    """Groups that fall behind those of their class; between processes of CPUs only grossly, and classes too.

    A GPU's link is judged by what one group gets of it. Messages between CPUs are small, so a slow network is seen
    where all groups share it.
    """
    known = best_known(timings, "alone" if on_gpus else "together")
    for exchange, of_class in known.items():
        for timing in of_class:
            others = median([other.median_us for other in of_class if other is not timing] or [timing.median_us])
            if timing.median_us > ODD * others if on_gpus else _is_gross(timing.median_us, others):
                times = timing.median_us / others
                message = f"{_named(timing)}, {times:.1f} times the median of the other groups of its class"
                yield _slow(message, exchange)
    if not on_gpus:
        yield from _slow_classes([timing for of_class in known.values() for timing in of_class])


def _slow_classes(timings: Sequence[Timing]) -> Iterator[Observation]:
    """All groups of a class behind those of another: on one CPU all ways are alike, so a network lies between."""
    large = [timing for timing in timings if timing.bytes >= LEAST_BYTES]
    speeds: dict[str, list[float]] = {}
    for timing in large:
        speeds.setdefault(timing.exchange.kind, []).append(timing.bus_bandwidth)
    best = max(speeds, key=lambda kind: median(speeds[kind]), default="")
    for kind, found in speeds.items():
        slow = max((timing for timing in large if timing.exchange.kind == kind), key=lambda each: each.median_us)
        times = median(speeds[best]) / median(found)
        if _is_gross(slow.median_us, slow.median_us / times):
            message = f"{_named(slow)}, {times:.0f} times slower than {best}"
            yield _slow(message, slow.exchange)


def _is_gross(microseconds: float, others: float) -> bool:
    return microseconds > GROSS * others and microseconds - others > LEAST_LATE_US


def _slow(message: str, exchange: Exchange) -> Observation:
    advice = f"look at the links that {exchange.kind} groups run over"
    return Observation("slow-group", "warning", "", message, advice)


def _named(timing: Timing) -> str:
    members = ",".join(map(str, timing.group))
    speed = f"{timing.bytes} bytes in {timing.median_us:.0f} us ({timing.bus_bandwidth:.3g} GB/s)"
    return f"{timing.exchange.operation} of {timing.exchange.kind} [{members}]: {speed}"
