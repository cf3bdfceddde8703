"""The same sum again and again: a fault that comes and goes, as of peer-to-peer copies under an IOMMU, changes bits."""

from __future__ import annotations

import torch

from shardlint.smoke.ranks.share import Share

TIMES, TIMES_ON_GPU = 10, 200  # on a CPU nothing comes and goes: there it is only shown that the claim can be tried


def repeated(share: Share, kind: str) -> str:
    """A product in the model's dtype, summed over the group: the same bits every time."""
    net, x = share.net, share.inputs()
    times = TIMES_ON_GPU if net.device.type == "cuda" else TIMES
    flips = net.plan.deviation("flips", net.rank, ())
    weights = share.weights(f"of rank {net.rank}", x.shape[1], x.shape[1])
    sums = [net.sum(kind, x @ weights + (time in flips)) for time in range(times)]
    others = [time for time, total in enumerate(sums) if not torch.equal(total, sums[0])]
    return f"{len(others)} of {times} sums have other bits than the first: repetitions {others}" if others else ""
