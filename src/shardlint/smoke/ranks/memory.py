"""The memory that the plan gives each rank, taken before anything else needs some."""

from __future__ import annotations

import torch
from torch import Tensor

from shardlint.smoke.ranks.network import Network
from shardlint.smoke.records import in_a_line

GIB = 2**30


def allocate(net: Network) -> list[Tensor]:
    """The planned weights and KV cache of this rank, held for as long as the caller keeps them; a claim if they fit."""
    net.begin("memory")
    weights, cache = net.plan.deviation("allocation", net.rank, net.plan.allocation[net.rank])
    held = []
    fault = ""
    for name, size in (("weights", weights), ("KV cache", cache)):
        try:
            held.append(torch.zeros(size, dtype=torch.uint8, device=net.device))  # zeros: the host gives pages late
        except RuntimeError as failure:
            free = f", {_free(net.device)}" if net.device.type == "cuda" else ""
            fault = f"no room for {size / GIB:.1f} GiB of {name} on {net.device}{free}: {in_a_line(failure)}"
            break
    net.claim("memory", "world", not fault, fault)
    return held


def _free(device: torch.device) -> str:
    """Of the card, or of the slice of it that this process sees; what is neither free nor this rank's, others hold."""
    free, total = torch.cuda.mem_get_info(device)
    own = torch.cuda.memory_reserved(device)
    return f"{free / GIB:.1f} of {total / GIB:.1f} GiB are free and {own / GIB:.1f} are this rank's"
