"""One rank among the others: its groups, the collectives over them, and what it says of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from shardlint.layout import Group, place_of, rank_of
from shardlint.smoke.plan import Plan
from shardlint.smoke.ranks.meeting import meeting_place
from shardlint.smoke.records import Checked, Doing, Record, Result, Timed

Say = Callable[[Record], None]
T = TypeVar("T")


class Network:
    """The groups of one rank and the collectives over them, each announced before it is entered."""

    def __init__(self, rank: int, plan: Plan, device: torch.device, say: Say) -> None:
        self.rank = rank
        self.plan = plan
        self.device = device
        self.place = place_of(rank, plan.sizes)
        self.world = plan.world_of(rank)
        self.check = "start-up"
        self._groups: dict[str, tuple[Group, dist.ProcessGroup]] = {}
        self._say = say

    def join(self, backend: str, store: str, timeout_seconds: float) -> None:
        """Meet the ranks of the same world, and make every group of the plan with them."""
        with self._waiting("meeting", "world", self.world):
            dist.init_process_group(
                backend,
                store=meeting_place(store, self.world, timeout_seconds),
                rank=self.world.index(self.rank),
                world_size=len(self.world),
                timeout=timedelta(seconds=timeout_seconds),
                device_id=self.device if backend == "nccl" else None,
            )
        assert dist.group.WORLD is not None
        self._groups["world"] = (self.world, dist.group.WORLD)
        self.begin("groups")
        for kind, planned in self.plan.groups.items():
            self._make(kind, self.plan.deviation(f"groups-{kind}", self.rank, planned))

    def _make(self, kind: str, table: Sequence[Sequence[int]]) -> None:
        """All groups of a kind: making one is a collective of the whole world, its members or not."""
        for group in table:
            if group[0] in self.world:
                with self._waiting("making the group", kind, self.world):
                    made = dist.new_group([self.world.index(member) for member in group])
                if self.rank in group:
                    self._groups[kind] = (tuple(group), made)

    def leave(self) -> None:
        """Wait until everybody is done: who goes early closes connections that others still use.

        The groups are left to the end of the process, which takes them along: taking them down by hand proves nothing,
        and hangs now and then (gloo's of torch 2.6; NCCL's whose communicators a graph has used).
        """
        self.check = "end"
        with self._waiting("barrier", "world", self.world):
            dist.barrier()

    def gather(self, kind: str, tensor: Tensor) -> list[Tensor]:
        """The tensors of all members in the order of the group; alone, one's own."""
        if kind not in self._groups:
            return [tensor]
        members, group = self._groups[kind]
        gathered = [torch.empty_like(tensor) for _ in members]
        with self._waiting("all-gather", kind, members):
            dist.all_gather(gathered, tensor.contiguous(), group=group)
        return _as_planned(members, gathered)

    def gather_uneven(self, kind: str, tensor: Tensor, rows: Sequence[int]) -> Tensor:
        """The rows of all members, of whom each has as many as `rows` says. Sent are as many as the most have."""
        room = tensor.new_zeros((max(rows), *tensor.shape[1:]))
        room[: len(tensor)] = tensor
        return torch.cat([part[:count] for part, count in zip(self.gather(kind, room), rows, strict=True)])

    def sum(self, kind: str, tensor: Tensor) -> Tensor:
        """The sum over all members; alone, the tensor itself."""
        if kind not in self._groups:
            return tensor
        members, group = self._groups[kind]
        total = tensor.clone()
        with self._waiting("all-reduce", kind, members):
            dist.all_reduce(total, group=group)
        return total

    def sum_uneven(self, kind: str, tensor: Tensor, rows: Sequence[int]) -> Tensor:
        """Of the sum over all members the rows that are one's own: a reduce-scatter, where `rows` says how many each
        gets. Through an all-to-all, because not every release of gloo has it."""
        if kind not in self._groups:
            return tensor
        own = rows[self.index(kind)]
        parts = self.exchange(kind, tensor, rows, [own] * len(rows))
        return torch.stack(parts.split(own)).sum(dim=0) if own else parts

    def exchange(self, kind: str, tensor: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """An all-to-all: so many rows of `tensor` go to each member in turn, so many come from each."""
        if kind not in self._groups:
            return tensor
        members, group = self._groups[kind]
        rows = tensor.new_empty((sum(received), *tensor.shape[1:]))
        by_rank = torch.cat(_by_rank(members, tensor.split(list(sent))))
        with self._waiting("all-to-all", kind, members):
            dist.all_to_all_single(rows, by_rank, _by_rank(members, received), _by_rank(members, sent), group=group)
        return torch.cat(_as_planned(members, rows.split(_by_rank(members, received))))

    def index(self, kind: str) -> int:
        """One's own place in the group of a kind; alone, the first."""
        return self.plan.group_of(kind, self.rank).index(self.rank)

    def send(self, stage: int, tensor: Tensor) -> None:
        """To the rank in the same place of another pipeline stage."""
        peer = rank_of(self.place._replace(pipeline=stage), self.plan.sizes)
        with self._waiting("send", "pp", (peer,)):
            dist.send(tensor.contiguous().to(self.sent_from), self.world.index(peer), group=self._groups["pp"][1])

    def receive(self, stage: int, tensor: Tensor) -> Tensor:
        """From the rank in the same place of another pipeline stage, a tensor like this one."""
        peer = rank_of(self.place._replace(pipeline=stage), self.plan.sizes)
        with self._waiting("receive", "pp", (peer,)):
            received = torch.empty_like(tensor, device=self.sent_from)
            dist.recv(received, self.world.index(peer), group=self._groups["pp"][1])
        return received.to(self.device)

    @property
    def sent_from(self) -> torch.device:
        """Where what one rank sends to another has to be: gloo takes tensors of a GPU in collectives alone."""
        return self.device if dist.get_backend() == "nccl" else torch.device("cpu")

    def meet(self) -> None:
        """Wait for all ranks of the world."""
        with self._waiting("barrier", "world", self.world):
            dist.all_reduce(torch.zeros(1, device=self.device))

    def members(self, kind: str) -> tuple[Group, dist.ProcessGroup]:
        """This rank's group of a kind."""
        return self._groups[kind]

    def within(self, operation: str, kind: str, act: Callable[[], None]) -> None:
        """Do something that waits for the members of a group."""
        with self._waiting(operation, kind, self._groups[kind][0]):
            act()

    def timed(self, exchange: int, mode: str, size: int, microseconds: Sequence[float]) -> None:
        """Say how long the repetitions of an exchange took, given in order."""
        middle, late = microseconds[len(microseconds) // 2], microseconds[int(len(microseconds) * 0.99)]
        self._say(Timed(self.rank, exchange, mode, size, round(middle, 1), round(late, 1)))

    def claim(self, claim: str, kind: str, ok: bool, message: str = "") -> None:
        """Say whether a claim over one of this rank's groups holds; the message counts where it does not."""
        self._say(Checked(self.rank, claim, kind, ok, "" if ok else message))

    def begin(self, check: str) -> None:
        """Name what comes next, for whoever asks where this rank is."""
        self.check = check
        self._say(Doing(self.rank, check))

    def result(self, *tensors: Tensor) -> None:
        """Give a digest of what this rank ended with to the parent, which compares it with the twins'."""
        numbers = [tensor.to("cpu", torch.int64).tolist() for tensor in tensors]
        self._say(Result(self.rank, sha256(repr(numbers).encode()).hexdigest()))

    @contextmanager
    def _waiting(self, operation: str, kind: str, awaited: Sequence[int]) -> Iterator[None]:
        self._say(Doing(self.rank, self.check, operation, kind, tuple(awaited)))
        yield
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # collectives return before they are done
        self._say(Doing(self.rank, self.check))


def _by_rank(members: Group, items: Sequence[T]) -> list[T]:
    """What members have, in torch's order, which sorts the ranks of a group."""
    return [items[members.index(member)] for member in sorted(members)]


def _as_planned(members: Group, items: Sequence[T]) -> list[T]:
    """What members have, from torch's order back to that of the plan."""
    return [items[sorted(members).index(member)] for member in members]
