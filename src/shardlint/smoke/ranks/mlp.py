"""A weight cut into columns, the next one into the same rows, and one sum."""

from __future__ import annotations

from shardlint.smoke.ranks.share import Share


def split_mlp(share: Share, kind: str) -> str:
    """Column-parallel, then row-parallel, one all-reduce: equal to the unsplit product, or whose part was wrong."""
    net, arithmetic = share.net, share.arithmetic
    mlp, x = share.mlp(0), share.inputs()
    part = share.part(mlp, x)
    total, parts = net.sum(kind, part), net.gather(kind, part)
    whole = mlp(x)
    if arithmetic.same(total, whole):
        return ""
    wanted = [mlp.shard(index, share.ways)(x) for index in range(share.ways)]
    culprits = arithmetic.culprits(net.plan.group_of(kind, net.rank), parts, wanted)
    return f"{arithmetic.difference(total, whole)}: {culprits}"
