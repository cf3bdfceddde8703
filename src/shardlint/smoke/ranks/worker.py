"""The order in which one rank tries what its layout means."""

from __future__ import annotations

import torch

from shardlint.smoke.plan import Plan
from shardlint.smoke.ranks.membership import membership
from shardlint.smoke.ranks.mlp import split_mlp
from shardlint.smoke.ranks.network import Network, Say
from shardlint.smoke.ranks.share import Share
from shardlint.smoke.ranks.stages import all_layers

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
