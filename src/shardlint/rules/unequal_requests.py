"""GPUs in `requests` and in `limits` that differ."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container
from shardlint.findings import Problem, Rule


def applies(container: Container) -> bool:
    return container.unequal_cards is not None


def judge(container: Container) -> Iterator[Problem]:
    if container.unequal_cards is None:
        return
    limits, requests = container.unequal_cards
    yield Problem(
        at=requests,
        message=f"{requests.value} GPUs in requests and {limits.value} in limits: Kubernetes takes no pod in which the "
        "two differ",
        sum=f"{requests.value} is not {limits.value}",
        help=(f"{limits.value} in requests too, or no GPUs there",),
        related=((limits, f"{limits.value} in limits"),),
    )


RULE = Rule("SL817", "unequal-requests", "world-vs-gpus", "error", "refuses-at-start", judge, applies, engines=())
