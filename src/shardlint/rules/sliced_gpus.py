"""Several ranks on slices of GPUs, or on GPUs that others use as well."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.findings import Effect, Located, Problem, Rule, Severity
from shardlint.findings.patterns import Pattern
from shardlint.layout.placement import Placement
from shardlint.rules._words import counted

ONE = Located(1, origin="default")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_MIG = Pattern(r"(?i)(?:^|[^a-z])mig(?:[^a-z]|$)|\d+g\.\d+gb|partition-size")
_VIRTUAL = Pattern(r"gpumem|gpucores|vgpu-")
"""Resources of schedulers that share cards by a library in each container (HAMi, Volcano)."""
_INSTANCE = Pattern(r"(?i)MIG-|\d+:\d+")
"""How an instance is named: by its UUID, or by the numbers of the card and of the instance."""


def applies(
    deployment: Deployment, tensor_parallel_size: Located[int], pipeline_parallel_size: Located[int] = ONE
) -> bool:
    return tensor_parallel_size.value * pipeline_parallel_size.value > 1 and _slices(deployment) is not None


def judge(
    deployment: Deployment,
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int] = ONE,
    placement: Located[Placement] | None = None,
) -> Iterator[Problem]:
    slices = _slices(deployment)
    if slices is None:
        return
    ranks = tensor_parallel_size.value * pipeline_parallel_size.value
    here = None if placement is None else placement.value.ranks_per_host
    outcome, severity, effect = _outcome(slices.value, here)
    name = slices.value if _INSTANCE.match(slices.value) else slices.value.partition(":")[0]
    yield Problem(
        at=slices,
        message=f"{name} gives parts of GPUs to {counted(ranks, 'rank')}: {outcome}",
        sum=counted(ranks, "rank") if here is None else f"{counted(here, 'rank')} on one host",
        help=("--tensor-parallel-size 1 on one slice, if the model fits it", f"{ranks} whole GPUs"),
        related=((tensor_parallel_size, f"TP {tensor_parallel_size.value}"),),
        severity=severity,
        effect=effect,
    )


def _slices(deployment: Deployment) -> Located[str] | None:
    """What names the parts: a resource or label, the instances that a process sees, or those that it is given."""
    launch = deployment.server.primary
    if launch.container is not None and launch.container.shared_cards is not None:
        return launch.container.shared_cards
    for variable in VARIABLES:
        word = deployment.env.get(variable)
        if isinstance(word, Located) and _INSTANCE.match(word.value.strip("\"'")):
            return word
    given = launch.gpus_per_pod
    if launch.cards and isinstance(given, Located) and all(_INSTANCE.match(card) for card in launch.cards):
        return Located(launch.cards[0], given.span, given.spelled)
    return None


def _outcome(slices: str, ranks: int | None) -> tuple[str, Severity, Effect]:
    """What comes of it; `ranks` are those of one host, None where that is not known."""
    if ranks is None or ranks < 2:
        return (
            "whoever has the rest of the cards shares their memory and time, and NCCL refuses two ranks on one card",
            "warning",
            "misbehaves",
        )
    if _MIG.search(slices) or _INSTANCE.match(slices):
        return (
            "CUDA shows a process one MIG instance and no second one, so that every rank but the first finds no device",
            "error",
            "fails-while-loading",
        )
    if _VIRTUAL.search(slices):
        return (
            "a shim counts each process's part of a card, and NCCL between such parts is known to hang",
            "warning",
            "hangs",
        )
    return (
        "two of them may be on one card, where NCCL refuses to start (Duplicate GPU detected)",
        "warning",
        "fails-while-loading",
    )


RULE = Rule(
    "SL808", "sliced-gpus", "mig-fractional", "error", "fails-while-loading", judge, applies, engines=("vllm", "sglang")
)
