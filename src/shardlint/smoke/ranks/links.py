"""How long the exchanges of a step of this model take: one group at a time, then all groups of a class at once.

Between processes of a CPU the first part is left out of a quick run: it takes the most time and proves the least.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from shardlint.smoke.exchanges import MOST_BYTES_ON_CPU, Exchange
from shardlint.smoke.job import Job
from shardlint.smoke.ranks.network import Network

BYTES_OF_A_BLOCK = 16
"""Messages are cut into equal shares of whole elements of any type."""


def time_exchanges(net: Network, job: Job) -> None:
    """Each exchange of the plan, in each of this rank's groups. The first use of a group connects, and is not timed."""
    for number, exchange in enumerate(job.exchanges if job.repetitions else ()):
        if exchange.kind in net.plan.groups:
            net.begin(f"links, {exchange.operation} of {exchange.kind}")
            own = net.plan.group_of(exchange.kind, net.rank)
            size = _size(exchange, len(own), job.backend)
            once = _once(net, exchange, size)
            once()
            table = [group for group in net.plan.groups[exchange.kind] if group[0] in net.world]
            for group in table if job.alone or len(table) == 1 else ():
                net.meet()
                if net.rank in group:
                    net.timed(number, "alone", size, _times(once, job.repetitions, net))
            if len(table) > 1:
                net.meet()
                net.timed(number, "together", size, _times(once, job.repetitions, net))


def _size(exchange: Exchange, ranks: int, backend: str) -> int:
    """Bytes of a message, a whole number of elements for each rank."""
    most = exchange.bytes if backend == "nccl" else min(exchange.bytes, MOST_BYTES_ON_CPU)
    unit = ranks * BYTES_OF_A_BLOCK
    return max(most // unit, 1) * unit


def _times(once: Callable[[], None], repetitions: int, net: Network) -> list[float]:
    """Microseconds of each repetition, sorted."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        once()
        if net.device.type == "cuda":
            torch.cuda.synchronize(net.device)
        found.append((time.perf_counter() - start) * 1e6)
    return sorted(found)


def _once(net: Network, exchange: Exchange, size: int) -> Callable[[], None]:
    """One exchange of this rank with its group; float32 stands for any type, for only bytes count."""
    members, group = net.members(exchange.kind)
    whole = torch.zeros(size // 4, dtype=torch.float32, device=net.device)
    parts = list(whole.chunk(len(members)))
    own = parts[members.index(net.rank)].clone()
    if exchange.operation == "all-reduce":
        return lambda: net.within(exchange.operation, exchange.kind, lambda: dist.all_reduce(whole, group=group))
    if exchange.operation == "all-gather":
        return lambda: net.within(exchange.operation, exchange.kind, lambda: dist.all_gather(parts, own, group=group))
    if exchange.operation == "reduce-scatter":
        return lambda: net.within(exchange.operation, exchange.kind, lambda: _reduce_scatter(own, parts, group))
    return _hop(net, exchange, members, whole)


def _reduce_scatter(own: Tensor, parts: list[Tensor], group: dist.ProcessGroup) -> None:
    """Through an all-to-all on gloo, which lacks it in some releases: the same bytes on the same links."""
    if own.device.type == "cuda":
        dist.reduce_scatter(own, parts, group=group)
    else:
        received = torch.empty_like(torch.cat(parts))
        dist.all_to_all_single(received, torch.cat(parts), group=group)


def _hop(net: Network, exchange: Exchange, members: tuple[int, ...], whole: Tensor) -> Callable[[], None]:
    """From stage to stage through the pipeline, and an answer of one element from its end to its beginning."""
    group = net.members(exchange.kind)[1]
    place = members.index(net.rank)
    answer = torch.zeros(1, device=net.device)
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

    return lambda: net.within(exchange.operation, exchange.kind, once)
