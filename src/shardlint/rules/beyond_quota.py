"""Copies that together ask for more GPUs than the file allows."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Deployment
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._words import counted


def applies(container: Container) -> bool:
    return container.card_quota is not None


def judge(
    container: Container, deployment: Deployment, deployments_before: tuple[Deployment, ...] = ()
) -> Iterator[Problem | Undecided]:
    quota = container.card_quota
    if not isinstance(quota, Located):
        if quota is not None:
            yield Undecided("card_quota", quota)
        return
    own = _cards(deployment)
    if own is None:
        return
    before = sum(_cards(other) or 0 for other in deployments_before if _same_quota(other, quota))
    if before + own <= quota.value or before > quota.value:
        return
    copies, each = deployment.replicas, deployment.gpus_per_pod
    several = isinstance(copies, Located) and copies.value > 1
    yield Problem(
        at=copies if several and isinstance(copies, Located) else each if isinstance(each, Located) else deployment.at,
        message=f"{deployment.name} asks for {counted(own, 'GPU')}"
        f"{f' beside {before} of others' if before else ''}, and the file allows {quota.value}: pods stay pending",
        sum=f"{' + '.join(str(part) for part in (before, own) if part)} > {quota.value} ({_factors(deployment)})",
        related=((quota, f"{counted(quota.value, 'GPU')} allowed"),),
    )


def _same_quota(other: Deployment, quota: Located[int]) -> bool:
    container = other.server.primary.container
    return container is not None and container.card_quota == quota


def _counts(deployment: Deployment) -> list[int] | None:
    """Copies, pods of each, GPUs of a pod; None where the GPUs are not told."""
    if not isinstance(deployment.gpus_per_pod, Located):
        return None
    parts = (deployment.replicas, deployment.pods, deployment.gpus_per_pod)
    return [part.value if isinstance(part, Located) else 1 for part in parts]


def _cards(deployment: Deployment) -> int | None:
    counts = _counts(deployment)
    return None if counts is None else counts[0] * counts[1] * counts[2]


def _factors(deployment: Deployment) -> str:
    copies, pods, cards = _counts(deployment) or (1, 1, 1)
    return f"{counted(copies, 'copy') if copies == 1 else f'{copies} copies'} x {counted(pods, 'pod')} x {cards}"


RULE = Rule("SL818", "beyond-quota", "world-vs-gpus", "warning", "hangs", judge, applies, engines=())
