"""What is to be said of the timings: which group falls behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from types import MappingProxyType

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


def link_observations(
    timings: Sequence[Timing], on_gpus: bool, host_of: Mapping[int, int] = MappingProxyType({})
) -> Iterator[Observation]:
    """Groups that fall behind those of their class; between processes of CPUs only grossly, and only over hosts.

    A GPU's link is judged by what one group gets of it. Messages between CPUs are small, so a slow network is seen
    where all groups share it; processes of one host share nothing but its cores, whose speed is no link's. `host_of`
    has the host of each rank, as a number.
    """
    if not on_gpus and len(set(host_of.values())) < 2:
        return
    known = best_known(timings, "alone" if on_gpus else "together")
    for exchange, of_class in known.items():
        for timing in of_class:
            others = median([other.median_us for other in of_class if other is not timing] or [timing.median_us])
            if timing.median_us > ODD * others if on_gpus else _is_gross(timing.median_us, others):
                times = timing.median_us / others
                message = f"{_named(timing)}, {times:.1f} times the median of the other groups of its class"
                yield _slow(message, exchange)
    if not on_gpus:
        yield from _slow_networks([timing for of_class in known.values() for timing in of_class], host_of)


def _slow_networks(timings: Sequence[Timing], host_of: Mapping[int, int]) -> Iterator[Observation]:
    """Classes whose groups run over hosts behind groups of as many ranks inside of one, which the network parts."""
    inside: dict[int, list[float]] = {}
    over: dict[tuple[str, int], list[Timing]] = {}
    for timing in timings:
        if timing.bytes >= LEAST_BYTES:
            ranks, is_inside = len(timing.group), len({host_of[rank] for rank in timing.group}) == 1
            if is_inside:
                inside.setdefault(ranks, []).append(timing.bus_bandwidth)
            else:
                over.setdefault((timing.exchange.kind, ranks), []).append(timing)
    for (_kind, ranks), found in over.items():
        if ranks in inside:
            slow = max(found, key=lambda each: each.median_us)
            times = median(inside[ranks]) / median(timing.bus_bandwidth for timing in found)
            if _is_gross(slow.median_us, slow.median_us / times):
                message = f"{_named(slow)}, {times:.0f} times slower than groups of {ranks} inside of a host"
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
