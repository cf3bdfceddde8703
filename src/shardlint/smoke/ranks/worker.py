"""The order in which one rank tries what its layout means."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from shardlint.smoke.claims import expected
from shardlint.smoke.job import ON_ONE_GPU, Job
from shardlint.smoke.plan import Plan
from shardlint.smoke.ranks import (
    attention,
    decode_context,
    experts,
    graph_replay,
    mlp,
    prefill_context,
    repetition,
    vocabulary,
)
from shardlint.smoke.ranks.arithmetic import WHOLE, Arithmetic, of_model
from shardlint.smoke.ranks.links import time_exchanges
from shardlint.smoke.ranks.membership import membership
from shardlint.smoke.ranks.memory import allocate
from shardlint.smoke.ranks.network import Network, Say
from shardlint.smoke.ranks.share import Share
from shardlint.smoke.ranks.stages import all_layers
from shardlint.smoke.records import Doing, Uses

VERSION = str(torch.__version__)

Check = Callable[[Share, str], str]
"""Tries one claim over this rank's group of a kind, in one arithmetic; what is wrong, empty where it holds."""

CHECKS: Mapping[str, Check] = {
    "split-mlp": mlp.split_mlp,
    "attention": attention.attention,
    "decode-context": decode_context.merged,
    "prefill-context": prefill_context.prefilled,
    "embedding": vocabulary.embedding,
    "output-head": vocabulary.output_head,
    "experts": experts.gathered,
    "experts-all-to-all": experts.sent,
    "repetition": repetition.repeated,
    "graph-replay": graph_replay.replayed,
}


def gpus() -> int:
    """GPUs that torch sees. Asked in a process of its own: one that has spoken to CUDA can no longer fork ranks."""
    return torch.cuda.device_count()


def nccl_version() -> str:
    """Of the NCCL that torch brings; empty where it brings none."""
    return ".".join(map(str, torch.cuda.nccl.version())) if torch.version.cuda else ""


def work(rank: int, job: Job, say: Say) -> None:
    """Run every check of one rank. Claims that do not hold are said; only what breaks the run is raised."""
    say(Doing(rank, "start-up"))
    torch.set_num_threads(1)
    plan = job.plan
    device = _device(rank, job, say)
    net = Network(rank, plan, device, say)
    net.join("nccl" if job.backend == "nccl" else "gloo", job.store, job.deadline_seconds)
    if membership(net):
        held = allocate(net) if plan.allocation else []
        for claim, check in CHECKS.items():
            judged = expected(plan).get(claim, ())
            for kind in ("world", *plan.groups):
                if (kind, rank) in judged:
                    _try(net, claim, kind, check)
        all_layers(net)
        del held
        time_exchanges(net, job)
    net.leave()


def _try(net: Network, claim: str, kind: str, check: Check) -> None:
    """One claim in every arithmetic that it is tried in; the first fault is told."""
    net.begin(claim)
    faults = {arithmetic.name: check(Share(net, arithmetic), kind) for arithmetic in _arithmetics(claim, net.plan)}
    fault = next((f"in {name}: {fault}" for name, fault in faults.items() if fault), "")
    net.claim(claim, kind, not fault, fault)


def _arithmetics(claim: str, plan: Plan) -> tuple[Arithmetic, ...]:
    """Whole numbers first. What is merged in float32 is tried in that too; repetitions only have to round alike, and
    graphs are replayed with whole numbers of the model's dtype."""
    if claim in ("repetition", "graph-replay"):
        return (of_model(plan),)
    return (WHOLE, *((decode_context.MERGED,) if claim == "decode-context" else ()), of_model(plan))


def _device(rank: int, job: Job, say: Say) -> torch.device:
    """A GPU of its own for each rank, or the CPU or one GPU for all of them."""
    if job.backend == "gloo":
        return torch.device("cpu")
    say(Doing(rank, "start-up", "opening its GPU"))
    own = 0 if job.backend == ON_ONE_GPU else job.seat.first_gpu + rank - job.seat.ranks(len(job.plan.ranks))[0]
    device = torch.device("cuda", own)
    torch.cuda.set_device(device)
    if job.backend == "nccl":
        say(Uses(rank, f"GPU-{torch.cuda.get_device_properties(device).uuid}"))
    torch.backends.cuda.matmul.allow_tf32 = False
    say(Doing(rank, "start-up"))
    return device
