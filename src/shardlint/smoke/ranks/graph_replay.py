"""An all-reduce recorded in a CUDA graph and run from there again, as vLLM does for every token that it decodes.

By torch's rules for graphs with NCCL: the group has been used before, there is a first run on a side stream, nothing is
under way when the recording begins, nobody synchronizes the device before it has ended, and the graph is gone before
its group is (it keeps the communicator in use, and destroying that would wait forever).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from shardlint.smoke.plan import TOKENS
from shardlint.smoke.ranks.arithmetic import WHOLE
from shardlint.smoke.ranks.network import Network
from shardlint.smoke.ranks.share import Share
from shardlint.smoke.records import in_a_line

REPLAYS = 3


class Recording(NamedTuple):
    """What was recorded: each replay sums the input as it then is into `total`."""

    total: Tensor
    replay: Callable[[], None]
    forget: Callable[[], None]


Record = Callable[[Network, str, Tensor], Recording]
"""Records the all-reduce of one tensor over the group of a kind. Raises RuntimeError for what keeps it from that."""


def replayed(share: Share, kind: str, record: Record | None = None) -> str:
    """Small whole numbers in the model's dtype, which sums exactly what hundreds of ranks add: other ones in each
    replay, copied to the place that was recorded."""
    net, members = share.net, share.plan.group_of(kind, share.net.rank)
    inputs = [[_input(share, number, member) for member in members] for number in range(1 + REPLAYS)]
    own = [of_members[members.index(net.rank)] for of_members in inputs]
    wanted = [torch.stack(of_members).sum(dim=0) for of_members in inputs]
    eager = net.sum(kind, own[0])
    static = own[0].clone()
    recording, failure = _recorded(net, kind, static, record or in_graph)
    unable = _unable(net, kind, failure)
    totals: list[Tensor] = []
    if recording is not None:
        totals = [] if unable else [_replay(net, kind, recording, static, numbers) for numbers in own[1:]]
        recording.forget()
    if not torch.equal(eager, wanted[0]):
        return f"eager is wrong already: {WHOLE.difference(eager, wanted[0])}"
    wrong = (number for number, total in enumerate(totals, 1) if not torch.equal(total, wanted[number]))
    return unable or next((_in_words(number, totals[number - 1], wanted) for number in wrong), "")


def in_graph(net: Network, kind: str, static: Tensor) -> Recording:
    """In a graph of CUDA's."""
    group = net.members(kind)[1]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        dist.all_reduce(static.clone(), group=group)
    torch.cuda.synchronize(net.device)
    graph = torch.cuda.CUDAGraph()
    # thread_local: the threads in which torch watches NCCL ask for events meanwhile, which is no fault of this one
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        total = static.clone()
        dist.all_reduce(total, group=group)
    return Recording(total, graph.replay, graph.reset)


def _recorded(net: Network, kind: str, static: Tensor, record: Record) -> tuple[Recording | None, str]:
    """The recording, or why there is none."""
    made: list[Recording] = []
    try:
        net.within("recording a graph", kind, lambda: made.append(record(net, kind, static)))
    except RuntimeError as failure:  # so are all errors of CUDA and NCCL
        return None, in_a_line(failure)
    return made[0], ""


def _replay(net: Network, kind: str, recording: Recording, static: Tensor, numbers: Tensor) -> Tensor:
    static.copy_(numbers)
    net.within("replay of a graph", kind, recording.replay)
    return recording.total.clone()


def _unable(net: Network, kind: str, failure: str) -> str:
    """Why nobody replays, empty where all can: one who did would wait for those who cannot."""
    members = net.plan.group_of(kind, net.rank)
    failed = net.gather(kind, torch.tensor([int(bool(failure))], device=net.device))
    ranks = [member for member, has_failed in zip(members, failed, strict=True) if has_failed]
    if failure:
        return f"eager is right, and cannot be captured: {failure}"
    return f"eager is right, and ranks {ranks} cannot capture it" if ranks else ""


def _in_words(number: int, total: Tensor, wanted: list[Tensor]) -> str:
    other = next((other for other, sums in enumerate(wanted) if torch.equal(total, sums)), None)
    instead = f"; it is the sum of {f'replay {other}' if other else 'the recording'}" if other is not None else ""
    return f"eager is right, replay {number} is wrong: {WHOLE.difference(total, wanted[number])}{instead}"


def _input(share: Share, number: int, member: int) -> Tensor:
    """[tokens, hidden] of a rank, which every rank knows."""
    numbers = WHOLE.matrix(f"replay {number} of rank {member}", TOKENS, share.plan.hidden.tried, 1.0)
    return numbers.to(share.net.device, share.arithmetic.dtype)
