"""The two ways in which a claim is tried: in whole numbers, and in the model's own dtype.

Small whole numbers are added by float32 without rounding in any order, so that comparison is exact and one wrong
element is a fault of the split. The model's dtype rounds, differently in every order; that is told from a fault by a
tolerance, and shows that the devices compute in it at all.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import torch
from torch import Tensor
from torch.nn import functional

from shardlint.smoke.plan import Plan

CLAMP = 4
"""What stands for an activation among whole numbers, and keeps them small."""


class Arithmetic(NamedTuple):
    """Numbers, and when two of them are the same. `tolerance` is a share of the largest element."""

    name: str
    dtype: torch.dtype
    tolerance: float

    @property
    def exact(self) -> bool:
        return self.tolerance == 0

    def matrix(self, name: str, rows: int, columns: int, deviation: float) -> Tensor:
        """The same for the same name on every rank and in every run: of that standard deviation, or -1, 0 and 1."""
        generator = torch.Generator().manual_seed(crc32(name.encode()))
        if self.exact:
            return torch.randint(-1, 2, (rows, columns), generator=generator, dtype=torch.float32)
        return (torch.randn(rows, columns, generator=generator) * deviation).to(self.dtype)

    def activation(self, x: Tensor) -> Tensor:
        return x.clamp(-CLAMP, CLAMP) if self.exact else functional.silu(x)

    def same(self, seen: Tensor, wanted: Tensor) -> bool:
        """Whether a result is what it should be; one of another shape is not."""
        if self.exact or seen.shape != wanted.shape or not wanted.numel():
            return torch.equal(seen, wanted)
        apart = (seen.double() - wanted.double()).abs().max()
        return bool(apart <= self.tolerance * wanted.double().abs().max())

    def difference(self, seen: Tensor, wanted: Tensor) -> str:
        """How many elements are not what they should be, and by how much."""
        apart = (seen.double() - wanted.double()).abs()
        if self.exact:
            return f"{int((apart != 0).sum())} of {apart.numel()} elements differ, by {int(apart.max())} at most"
        largest = float(wanted.double().abs().max())
        return f"off by {float(apart.max()):.2g} where the largest element is {largest:.2g}"

    def culprits(
        self, members: tuple[int, ...], parts: list[Tensor], wanted: list[Tensor], piece: str = "shard"
    ) -> str:
        """Which members added something else than their piece."""
        wrong = [
            f"rank {member} added {self._in_words(part, wanted, members, piece)}"
            for member, part, right in zip(members, parts, wanted, strict=True)
            if not self.same(part, right)
        ]
        return "; ".join(wrong) or "every rank's part is right, so their sum is at fault"

    def _in_words(self, part: Tensor, wanted: list[Tensor], members: tuple[int, ...], piece: str) -> str:
        if not part.any():
            return "nothing"
        for member, other in zip(members, wanted, strict=True):
            for times in (1, 2):
                if self.same(part, times * other):
                    return f"the {piece} of rank {member}" + (" twice" if times == 2 else "")
        return f"no {piece} of the model"


WHOLE = Arithmetic("whole numbers", torch.float32, 0)


def of_model(plan: Plan) -> Arithmetic:
    """The model's dtype with its tolerance."""
    return Arithmetic(plan.dtype, getattr(torch, plan.dtype), plan.tolerance)
