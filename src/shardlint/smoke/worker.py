"""What one rank of a layout does, and how it knows that it came out right. The only file that imports torch.

It runs in a child process, forked after torch was imported once.  All tensors hold small whole numbers, which
float32 adds without rounding in any order, so every comparison is exact: one wrong element is a fault of the split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from shardlint.layout import Group, place_of, rank_of
from shardlint.smoke.plan import TOKENS, Plan
from shardlint.smoke.records import Checked, Doing, Record, Result

Say = Callable[[Record], None]

VERSION = str(torch.__version__)


def gpus() -> int:
    """GPUs that torch sees. Asked in a process of its own: one that has spoken to CUDA can no longer fork ranks."""
    return torch.cuda.device_count()


def work(rank: int, plan: Plan, backend: str, store: str, timeout_seconds: float, say: Say) -> None:
    """Run every check of one rank. Claims that do not hold are said; only what breaks the run is raised."""
    torch.set_num_threads(1)
    device = _device(rank, backend)
    net = Network(rank, plan, device, say)
    net.join(backend, store, timeout_seconds)
    if membership(net):
        share = Share(net)
        if plan.sizes.tensor_parallel_size > 1:
            split_mlp(share)
        all_layers(share)
    net.leave()


def _device(rank: int, backend: str) -> torch.device:
    """A GPU of its own for each rank, or the CPU for all of them."""
    if backend != "nccl":
        return torch.device("cpu")
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    return device


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
                init_method=f"file://{store}-{self.world[0]}",
                rank=self.world.index(self.rank),
                world_size=len(self.world),
                timeout=timedelta(seconds=timeout_seconds),
                device_id=self.device if backend == "nccl" else None,
            )
        assert dist.group.WORLD is not None
        self._groups["world"] = (self.world, dist.group.WORLD)
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
        """Wait until everybody is done: who goes early closes connections that others still use."""
        self.check = "end"
        with self._waiting("barrier", "world", self.world):
            dist.barrier()
        dist.destroy_process_group()

    def gather(self, kind: str, tensor: Tensor) -> list[Tensor]:
        """The tensors of all members in the order of the group; alone, one's own."""
        if kind not in self._groups:
            return [tensor]
        members, group = self._groups[kind]
        gathered = [torch.empty_like(tensor) for _ in members]
        with self._waiting("all-gather", kind, members):
            dist.all_gather(gathered, tensor.contiguous(), group=group)
        return gathered

    def sum(self, kind: str, tensor: Tensor) -> Tensor:
        """The sum over all members; alone, the tensor itself."""
        if kind not in self._groups:
            return tensor
        members, group = self._groups[kind]
        total = tensor.clone()
        with self._waiting("all-reduce", kind, members):
            dist.all_reduce(total, group=group)
        return total

    def send(self, stage: int, tensor: Tensor) -> None:
        """To the rank in the same place of another pipeline stage."""
        peer = rank_of(self.place._replace(pipeline=stage), self.plan.sizes)
        with self._waiting("send", "pp", (peer,)):
            dist.send(tensor.contiguous(), self.world.index(peer), group=self._groups["pp"][1])

    def receive(self, stage: int, tensor: Tensor) -> Tensor:
        """From the rank in the same place of another pipeline stage, into `tensor`."""
        peer = rank_of(self.place._replace(pipeline=stage), self.plan.sizes)
        with self._waiting("receive", "pp", (peer,)):
            dist.recv(tensor, self.world.index(peer), group=self._groups["pp"][1])
        return tensor

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


def membership(net: Network) -> bool:
    """Every group is asked who is in it. True where each rank of the world met whom the plan gives it."""
    net.begin("membership")
    own = torch.tensor([net.rank], dtype=torch.int64, device=net.device)
    ok = True
    for kind in ("world", *net.plan.groups):
        met = tuple(int(tensor) for tensor in net.gather(kind, own))
        planned = net.plan.group_of(kind, net.rank)
        ok = ok and met == planned
        net.claim("membership", kind, met == planned, f"the plan has {list(planned)}, and {list(met)} met")
    strangers = net.sum("world", torch.tensor([int(not ok)], dtype=torch.int64, device=net.device))
    return int(strangers) == 0


class Mlp(NamedTuple):
    """The weights of one MLP: `up` is [hidden, width], `down` is [width, hidden]."""

    up: Tensor
    down: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """[tokens, hidden] -> [tokens, hidden]; clamping stands for the activation and keeps the numbers small."""
        return (x @ self.up).clamp(-4, 4) @ self.down

    def shard(self, index: int, ways: int) -> Mlp:
        """Columns of `up` and the same rows of `down`: what tensor parallelism gives one rank."""
        return Mlp(self.up.chunk(ways, dim=1)[index], self.down.chunk(ways, dim=0)[index])


class State(NamedTuple):
    """What one stage hands to the next, both [tokens, hidden]."""

    hidden_states: Tensor
    residual: Tensor

    def normed(self) -> tuple[Tensor, Tensor]:
        """The new residual, and the input of the next block (the remainder stands for the norm)."""
        residual = self.residual + self.hidden_states
        return residual, residual.remainder(7) - 3


class Share:
    """What one rank computes: weights from a seed, whole as a reference and cut as the plan says."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.plan = net.plan
        self.ways = net.plan.sizes.tensor_parallel_size
        self.shards: Sequence[int] = net.plan.deviation("shards", net.rank, (net.place.tensor,))
        self._seed = int(net.plan.deviation("seed", net.rank, 0))

    def numbers(self, name: int, rows: int, columns: int) -> Tensor:
        """A matrix of -1, 0 and 1 that is the same on every rank and in every run."""
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + name)
        drawn = torch.randint(-1, 2, (rows, columns), generator=generator, dtype=torch.float32)
        return drawn.to(self.net.device)

    def inputs(self) -> Tensor:
        return self.numbers(0, TOKENS, self.plan.hidden.tried)

    def mlp(self, layer: int) -> Mlp:
        hidden, width = self.plan.hidden.tried, self.plan.width.tried
        return Mlp(self.numbers(2 * layer + 1, hidden, width), self.numbers(2 * layer + 2, width, hidden))

    def part(self, mlp: Mlp, x: Tensor) -> Tensor:
        """What this rank adds to the sum over its tensor parallel group."""
        parts = [mlp.shard(index, self.ways)(x) for index in self.shards]
        return torch.stack(parts).sum(dim=0) if parts else torch.zeros_like(x)

    def first(self) -> State:
        """What the embedding gives."""
        return State(self.inputs(), torch.zeros_like(self.inputs()))

    def unsplit(self) -> list[State]:
        """The states of the whole model on one device: before the first layer, and after each."""
        states = [self.first()]
        for layer in range(self.plan.layers):
            residual, x = states[-1].normed()
            states.append(State(self.mlp(layer)(x), residual))
        return states


def split_mlp(share: Share) -> None:
    """Column-parallel, then row-parallel, one all-reduce: equal to the unsplit product, or whose part was wrong."""
    net = share.net
    net.begin("split-mlp")
    mlp, x = share.mlp(0), share.inputs()
    part = share.part(mlp, x)
    total = net.sum("tp", part)
    parts = net.gather("tp", part)
    wanted = [mlp.shard(index, share.ways)(x) for index in range(share.ways)]
    message = f"{_difference(total, mlp(x))}: {_culprits(net.plan.group_of('tp', net.rank), parts, wanted)}"
    net.claim("split-mlp", "tp", torch.equal(total, mlp(x)), message)


def all_layers(share: Share) -> None:
    """The layers of every stage in turn, with the hand-off between the stages, against the unsplit model."""
    net, plan, stage = share.net, share.plan, share.net.place.pipeline
    net.begin("all-layers")
    unsplit = share.unsplit()
    state = _take_over(share, unsplit) if stage > 0 else share.first()
    for layer in range(*plan.deviation("layers", net.rank, plan.stages[stage])):
        residual, x = state.normed()
        state = State(net.sum("tp", share.part(share.mlp(layer), x)), residual)
    net.result(*state)
    if stage + 1 < len(plan.stages):
        _hand_over(share, state)
    else:
        net.claim("all-layers", "world", _same(state, unsplit[-1]), _state_difference(state, unsplit, plan.layers))


def _hand_over(share: Share, state: State) -> None:
    net = share.net
    if not net.plan.deviation("residual", net.rank, True):
        state = state._replace(residual=torch.zeros_like(state.residual))
    for tensor in state:
        net.send(net.place.pipeline + 1, _slice(share, tensor))


def _take_over(share: Share, unsplit: Sequence[State]) -> State:
    """Both tensors from the stage before, judged by what its last layer gives in the unsplit model."""
    net = share.net
    whole = unsplit[0].hidden_states
    pieces = [net.receive(net.place.pipeline - 1, torch.empty_like(_slice(share, whole))) for _ in State._fields]
    state = State(*(_joined(share, piece, whole) for piece in pieces))
    start = net.plan.stages[net.place.pipeline][0]
    message = _state_difference(state, unsplit, start)
    net.claim("stage-hand-off", "pp", _same(state, unsplit[start]), message)
    return state


def _slice(share: Share, tensor: Tensor) -> Tensor:
    """The 1/TP of a tensor, flat, that goes over the wire; all of it where its elements do not divide, as in vLLM."""
    if tensor.numel() % share.ways:
        return tensor.flatten()
    return tensor.reshape(share.ways, -1)[share.net.place.tensor]


def _joined(share: Share, piece: Tensor, whole: Tensor) -> Tensor:
    """What the members of the tensor parallel group have received, in the shape of `whole`."""
    pieces = share.net.gather("tp", piece) if piece.numel() < whole.numel() else [piece]
    return torch.cat(pieces).reshape(whole.shape)


def _same(state: State, wanted: State) -> bool:
    return torch.equal(state.hidden_states, wanted.hidden_states) and torch.equal(state.residual, wanted.residual)


def _difference(seen: Tensor, wanted: Tensor) -> str:
    apart = (seen - wanted).abs()
    return f"{int((apart != 0).sum())} of {apart.numel()} elements differ, by {int(apart.max())} at most"


def _state_difference(state: State, unsplit: Sequence[State], layers: int) -> str:
    """What is wrong with a state that should be that after the first `layers` layers."""
    other = next((number for number, wanted in enumerate(unsplit) if _same(state, wanted)), None)
    if other is not None:
        return f"these are the tensors after {other} layers, and {layers} are planned up to here"
    wrong = [
        f"{name}: {_difference(seen, wanted)}"
        for name, seen, wanted in zip(State._fields, state, unsplit[layers], strict=True)
        if not torch.equal(seen, wanted)
    ]
    return f"not what the first {layers} layers give; {'; '.join(wrong)}"


def _culprits(members: Group, parts: Sequence[Tensor], wanted: Sequence[Tensor]) -> str:
    """Which members added something else than their shard."""
    wrong = [
        f"rank {member} added {_in_words(part, wanted, members)}"
        for member, part, right in zip(members, parts, wanted, strict=True)
        if not torch.equal(part, right)
    ]
    return "; ".join(wrong) or "every rank's part is right, so the all-reduce is at fault"


def _in_words(part: Tensor, wanted: Sequence[Tensor], members: Group) -> str:
    for member, other in zip(members, wanted, strict=True):
        for times in (1, 2):
            if torch.equal(part, times * other):
                return f"the shard of rank {member}" + (" twice" if times == 2 else "")
    return "no shard of this layer" if part.any() else "nothing"
