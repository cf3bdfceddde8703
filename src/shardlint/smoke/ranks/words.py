"""What differs, and whose fault that is, in words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shardlint.layout import Group


def difference(seen: Tensor, wanted: Tensor) -> str:
    """How many elements are not what they should be, and by how much."""
    apart = (seen - wanted).abs()
    return f"{int((apart != 0).sum())} of {apart.numel()} elements differ, by {int(apart.max())} at most"


def culprits(members: Group, parts: Sequence[Tensor], wanted: Sequence[Tensor]) -> str:
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
