"""What tests ask of forms that state a layout in fields: the deployments that engines make of a manifest's launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardlint import engines
from shardlint.deployment import Deployment, Launch
from shardlint.findings import Located
from shardlint.servers import assemble


def deployments(launches: Sequence[Launch]) -> list[Deployment]:
    """As a check makes them of one file."""
    return [engines.read(server) for server in assemble(launches, engines.recognise)]


def only(launches: Sequence[Launch]) -> Deployment:
    (deployment,) = deployments(launches)
    return deployment


def sizes(deployment: Deployment) -> dict[str, Any]:
    """The values of all knobs that are known."""
    return {name: value.value for name, value in deployment.knobs.items() if isinstance(value, Located)}
