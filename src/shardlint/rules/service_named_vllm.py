"""A Service whose name makes Kubernetes set a variable that vLLM reads as a port."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Deployment
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named

VARIABLE = "VLLM_PORT"
SERVICE = "vllm"
NEEDS_NO_PORT_SINCE = Version.of("0.33.0")
"""From here on one rank alone meets nobody at a port."""
ONE = Located(1, origin="default")


def applies(container: Container, deployment: Deployment) -> bool:
    return any(service.value == SERVICE for service in container.services) and VARIABLE not in deployment.env


def judge(
    container: Container,
    engine: Engine,
    engine_version: Located[Version],
    world_size: Located[int] = ONE,
    data_parallel_size: Located[int] = ONE,
) -> Iterator[Problem]:
    is_alone = world_size.value * data_parallel_size.value <= 1
    if is_alone and engine_version.value >= NEEDS_NO_PORT_SINCE:
        return
    for service in container.services:
        if service.value == SERVICE:
            yield Problem(
                at=service,
                message=f"a Service called {SERVICE} makes Kubernetes set {VARIABLE}=tcp://ADDRESS:PORT in pods that "
                f"start after it, and {named(engine, engine_version)} reads a port there: it stops as soon as its "
                "processes need one",
                help=("another name for the Service", "enableServiceLinks: false in the pod's spec"),
            )


RULE = Rule("SL815", "service-named-vllm", "nccl-net", "warning", "fails-while-loading", judge, applies)
