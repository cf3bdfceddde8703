"""A probe that kills the server before it has loaded its model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardlint.deployment import Container, Deployment, Probe
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.layout.loading import loading_seconds
from shardlint.layout.lower_bound import LowerBound
from shardlint.layout.overheads import Estimate
from shardlint.rules._words import gib

PERIOD_SECONDS = 10
"""Of the probe that is advised."""


def applies(container: Container) -> bool:
    return _deciding(container) is not None


def judge(
    container: Container, deployment: Deployment, least_weights: Located[LowerBound] | None = None
) -> Iterator[Problem | Undecided]:
    probe = _deciding(container)
    if probe is None:
        return
    if not isinstance(probe.seconds, Located):
        yield Undecided(probe.name, probe.seconds)
        return
    weights = least_weights.value.replica_bytes if least_weights is not None else 0
    model = deployment.model
    from_hub = isinstance(model, Located) and not model.value.startswith(("/", "."))
    downloads = from_hub and not container.has_volumes
    loading = loading_seconds(weights, downloads=downloads)
    allowed = probe.seconds.value
    if allowed >= loading.likely:
        return
    what = f"downloading and loading {gib(weights)}" if downloads and weights else f"loading {gib(weights)}"
    yield Problem(
        at=probe.at,
        message=f"{probe.name} restarts a container that does not answer within {allowed} s, and "
        f"{what if weights else 'starting a server'} takes {_about(loading)}: it is killed before it serves",
        sum=f"{probe.reckoning} < {_about(loading)}",
        help=(_advice(loading),),
        certainty="estimate",
    )


def _deciding(container: Container) -> Probe | None:
    """The probe that a loading server has to outlive: no liveness probe runs before the startup probe is answered."""
    probe = container.startup or container.liveness
    return probe if probe is not None and probe.asks_server else None


def _about(seconds: Estimate) -> str:
    return f"about {seconds.likely:.0f} s (estimate: {seconds.low:.0f} to {seconds.high:.0f} s)"


def _advice(loading: Estimate) -> str:
    failures = math.ceil(loading.high / PERIOD_SECONDS)
    return f"startupProbe with periodSeconds: {PERIOD_SECONDS} and failureThreshold: {failures}"


RULE = Rule("SL807", "impatient-probe", "probes", "warning", "misbehaves", judge, applies, engines=("vllm", "sglang"))
