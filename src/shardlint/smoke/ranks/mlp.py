"""A weight cut into columns, the next one into the same rows, and one sum."""

from __future__ import annotations

import torch

from shardlint.smoke.ranks.share import Share
from shardlint.smoke.ranks.words import culprits, difference


def split_mlp(share: Share) -> None:
    """Column-parallel, then row-parallel, one all-reduce: equal to the unsplit product, or whose part was wrong."""
    net = share.net
    net.begin("split-mlp")
    mlp, x = share.mlp(0), share.inputs()
    part = share.part(mlp, x)
    total = net.sum("tp", part)
    parts = net.gather("tp", part)
    wanted = [mlp.shard(index, share.ways)(x) for index in range(share.ways)]
    message = f"{difference(total, mlp(x))}: {culprits(net.plan.group_of('tp', net.rank), parts, wanted)}"
    net.claim("split-mlp", "tp", torch.equal(total, mlp(x)), message)
