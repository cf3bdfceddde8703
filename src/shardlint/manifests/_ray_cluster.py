"""A Ray cluster of an operator: the pods of its head and of its worker groups, which make one engine instance."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _pods, _roles, _surroundings
from shardlint.text.documents import Document
from shardlint.text.nodes import Node

STARTS_RAY: _roles.Variables = {"KUBERAY_GEN_RAY_START_CMD": Unknown("the ray start command that the operator writes")}


def launches(cluster: Node, base: Launch, document: Document) -> Iterator[Launch]:
    """The launches of all pods of a cluster, in one group; the head leads."""
    workers = list(_roles.entries(cluster.get("workerGroupSpecs")))
    base = base._replace(
        pods=size(workers, cluster), group=f"{base.name}:{base.at.line}:{base.at.column}", role="leader"
    )
    pods = [(cluster.get("headGroupSpec"), base), *((worker, base._replace(role="worker")) for worker in workers)]
    for group, own in pods:
        spec = group.get("template", "spec") if group is not None else None
        for launch in _pods.launches(spec, own, document, STARTS_RAY):
            yield launch._replace(container=around(launch.container))


def around(container: Container | None) -> Container | None:
    """The operator mounts memory at /dev/shm, and the probes of its pods ask Ray and not the engine."""
    mounted = _surroundings.with_operators_memory(container)
    return None if mounted is None else mounted._replace(liveness=None, startup=None)


def size(workers: list[Node], cluster: Node) -> Maybe[int]:
    """The head and the workers of every group."""
    total = 1
    for worker in workers:
        copies = _pods.number(worker.get("replicas")) or _pods.number(worker.get("minReplicas"))
        count = _roles.product(copies, _pods.number(worker.get("numOfHosts")))
        if not isinstance(count, Located):
            return count or Unknown("the number of workers is not written", worker.span)
        total += count.value
    return Located(total, cluster.span, "", "derived", "the head and its workers")
