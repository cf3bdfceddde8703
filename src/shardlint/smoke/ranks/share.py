"""What one rank holds: weights from a seed, whole as a reference and cut as the plan says.

All tensors hold small whole numbers, which float32 adds without rounding in any order, so every comparison is exact:
one wrong element is a fault of the split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke.plan import TOKENS
from shardlint.smoke.ranks.network import Network


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
