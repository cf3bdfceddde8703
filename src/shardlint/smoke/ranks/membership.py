"""Who is in which group."""

from __future__ import annotations

import torch

from shardlint.smoke.ranks.network import Network


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
