"""Containers of one host that hand KV caches to each other, and cannot reach each other's GPU memory."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Deployment
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import listed

FIELD = "kv-transfer-config"


def applies(container: Container, deployment: Deployment, started_together: tuple[Deployment, ...]) -> bool:
    return _hands_over(deployment) and bool(started_together)


def judge(
    deployment: Deployment,
    started_together: tuple[Deployment, ...],
    container: Container,
    gpus_per_pod: Located[int] | None = None,
) -> Iterator[Problem]:
    own = deployment.server.primary
    for peer in started_together:
        theirs = peer.server.primary
        if not _hands_over(peer) or theirs.container is None or _comes_first(peer, deployment):
            continue
        apart = not container.process_namespace or container.process_namespace != theirs.container.process_namespace
        hidden = own.cards is not None and theirs.cards is not None and set(own.cards) != set(theirs.cards)
        if not apart:
            continue
        walls = ["process namespaces of their own"]
        walls += [f"only GPU {listed(own.cards or ())} and only GPU {listed(theirs.cards or ())}"] if hidden else []
        yield Problem(
            at=gpus_per_pod if gpus_per_pod is not None else own.at,
            message=f"{own.name} and {theirs.name} hand KV caches to each other on one host, and have "
            f"{' and '.join(walls)}: CUDA IPC does not work across that, and the caches go over TCP",
            help=(
                "pid: host for both" if deployment.kind == "service" else "--pid=host for both",
                "all GPUs for both, each with its own CUDA_VISIBLE_DEVICES",
            ),
            related=((theirs.at, f"{theirs.name} starts here"),),
        )


def _hands_over(deployment: Deployment) -> bool:
    """Whether its connector is NIXL, which uses the fastest way that it finds."""
    config = deployment.engine_fields.get(FIELD)
    return isinstance(config, Located) and "Nixl" in str(config.value)


def _comes_first(peer: Deployment, own: Deployment) -> bool:
    return (peer.at.line, peer.at.column) < (own.at.line, own.at.column)


RULE = Rule("SL814", "walled-off-peers", "shm-ipc", "warning", "slow", judge, applies)
