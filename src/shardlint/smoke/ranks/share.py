"""What one rank holds of a model that is made of a seed: whole as a reference, and cut as the plan says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke.plan import TOKENS
from shardlint.smoke.ranks.arithmetic import WHOLE, Arithmetic
from shardlint.smoke.ranks.network import Network


class Mlp(NamedTuple):
    """The weights of one MLP: `up` is [hidden, width], `down` is [width, hidden]."""

    up: Tensor
    down: Tensor
    arithmetic: Arithmetic

    def __call__(self, x: Tensor) -> Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        return self.arithmetic.activation(x @ self.up) @ self.down

    def shard(self, index: int, ways: int) -> Mlp:
        """Columns of `up` and the same rows of `down`: what tensor parallelism gives one rank."""
        return self._replace(up=self.up.chunk(ways, dim=1)[index], down=self.down.chunk(ways, dim=0)[index])


class Share:
    """One rank's part of the model in one arithmetic."""

    def __init__(self, net: Network, arithmetic: Arithmetic = WHOLE) -> None:
        self.net = net
        self.plan = net.plan
        self.arithmetic = arithmetic
        self.ways = net.plan.sizes.tensor_parallel_size
        self.shards: Sequence[int] = net.plan.deviation("shards", net.rank, (net.place.tensor,))
        self._seed = int(net.plan.deviation("seed", net.rank, 0))

    def weights(self, name: str, rows: int, columns: int) -> Tensor:
        """A weight, the same on every rank; a product with it is about as large as what it is multiplied by."""
        return self._matrix(name, rows, columns, rows**-0.5)

    def inputs(self, tokens: int = TOKENS, name: str = "inputs") -> Tensor:
        """[tokens, hidden], the same on every rank."""
        return self._matrix(name, tokens, self.plan.hidden.tried, 1.0)

    def _matrix(self, name: str, rows: int, columns: int, deviation: float) -> Tensor:
        return self.arithmetic.matrix(f"{name} {self._seed}", rows, columns, deviation).to(self.net.device)

    def mlp(self, layer: int) -> Mlp:
        hidden, width = self.plan.hidden.tried, self.plan.width.tried
        up, down = self.weights(f"up {layer}", hidden, width), self.weights(f"down {layer}", width, hidden)
        return Mlp(up, down, self.arithmetic)

    def part(self, mlp: Mlp, x: Tensor) -> Tensor:
        """What this rank adds to the sum over its tensor parallel group."""
        parts = [mlp.shard(index, self.ways)(x) for index in self.shards]
        return torch.stack(parts).sum(dim=0) if parts else torch.zeros_like(x)
