"""How long the exchanges of a step of this model take: one group at a time, then all groups of a class at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from shardlint.smoke.exchanges import MOST_BYTES_ON_CPU, Exchange, Mode
from shardlint.smoke.job import Job
from shardlint.smoke.ranks.network import Network

BYTES_OF_A_BLOCK = 16
"""Messages are cut into equal shares of whole elements of any type."""

ANNOUNCED_SECONDS = 1.0
"""How long repetitions may take before this rank says again that it is at work: a slow link does not stand still."""

all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
"""From one flat tensor, or into one, without the copies that lists cost; newer releases give them the first names."""


class Prepared(NamedTuple):
    """One exchange of this rank with its group."""

    number: int
    """Among those of the job."""
    exchange: Exchange
    bytes: int
    once: Callable[[], None]


def time_exchanges(net: Network, job: Job) -> None:
    """Each exchange of the plan, in each of this rank's groups, class by class."""
    for kind, table in net.plan.groups.items() if job.repetitions else ():
        if prepared := [_prepared(net, job, number) for number, each in enumerate(job.exchanges) if each.kind == kind]:
            net.begin(f"links of {kind}")
            _time_class(net, prepared, [group for group in table if group[0] in net.world], job.repetitions)


def _time_class(net: Network, prepared: Sequence[Prepared], table: Sequence[Sequence[int]], repetitions: int) -> None:
    """The first use of a group connects, and is not timed; nor does one group begin before the last has ended."""
    for each in prepared:
        net.within(each.exchange.operation, each.exchange.kind, each.once)
    for group in table:
        net.meet()
        if net.rank in group:
            _time(net, prepared, "alone", repetitions)
    if len(table) > 1:
        for each in prepared:
            net.meet()
            _time(net, [each], "together", repetitions)


def _time(net: Network, prepared: Sequence[Prepared], mode: Mode, repetitions: int) -> None:
    for each in prepared:
        net.timed(each.number, mode, each.bytes, _repeated(net, each, repetitions))


def _repeated(net: Network, each: Prepared, repetitions: int) -> list[float]:
    """Microseconds of each repetition, sorted. Nothing is announced while the clock runs."""
    found: list[float] = []

    def go_on() -> None:
        found.extend(for_a_moment(each.once, repetitions - len(found), net.device))

    while len(found) < repetitions:
        net.within(each.exchange.operation, each.exchange.kind, go_on)
    return sorted(found)


def for_a_moment(once: Callable[[], None], repetitions: int, device: torch.device) -> list[float]:
    """Microseconds of so many repetitions, or of those that began in time."""
    found: list[float] = []
    end = time.perf_counter() + ANNOUNCED_SECONDS
    while len(found) < repetitions and (start := time.perf_counter()) < end:
        once()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append((time.perf_counter() - start) * 1e6)
    return found


def _prepared(net: Network, job: Job, number: int) -> Prepared:
    exchange = job.exchanges[number]
    size = _size(exchange, len(net.plan.group_of(exchange.kind, net.rank)), job.backend)
    return Prepared(number, exchange, size, _once(net, exchange, size))


def _size(exchange: Exchange, ranks: int, backend: str) -> int:
    """Bytes of a message, a whole number of elements for each rank."""
    most = exchange.bytes if backend == "nccl" else min(exchange.bytes, MOST_BYTES_ON_CPU)
    unit = ranks * BYTES_OF_A_BLOCK
    return max(most // unit, 1) * unit


def _once(net: Network, exchange: Exchange, size: int) -> Callable[[], None]:
    """Float32 stands for any type, for only bytes count."""
    members, group = net.members(exchange.kind)
    whole = torch.zeros(size // 4, dtype=torch.float32, device=net.device)
    own = torch.zeros(len(whole) // len(members), dtype=torch.float32, device=net.device)
    if exchange.operation == "all-reduce":
        return lambda: dist.all_reduce(whole, group=group)
    if exchange.operation == "all-gather":
        return lambda: all_gather(whole, own, group=group)
    if exchange.operation == "reduce-scatter" and dist.get_backend(group) == "nccl":
        return lambda: reduce_scatter(own, whole, group=group)
    if exchange.operation == "reduce-scatter":  # which gloo lacks in some releases: the same bytes on the same links
        received = torch.empty_like(whole)
        return lambda: dist.all_to_all_single(received, whole, group=group)
    return _hop(net, members, group, whole)


def _hop(net: Network, members: Sequence[int], group: dist.ProcessGroup, whole: Tensor) -> Callable[[], None]:
    """From stage to stage through the pipeline, and an answer of one element from its end to its beginning."""
    place = members.index(net.rank)
    whole, answer = whole.to(net.sent_from), torch.zeros(1, device=net.sent_from)
    first, last = net.world.index(members[0]), net.world.index(members[-1])

    def once() -> None:
        if place > 0:
            dist.recv(whole, net.world.index(members[place - 1]), group=group)
        if place + 1 < len(members):
            dist.send(whole, net.world.index(members[place + 1]), group=group)
        if place == 0:
            dist.recv(answer, last, group=group)
        if place == len(members) - 1:
            dist.send(answer, first, group=group)

    return once
