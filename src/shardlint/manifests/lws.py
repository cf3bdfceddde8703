"""LeaderWorkerSet: groups of pods, one leader and its workers each, that make one engine instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "lws"
FILES = YAML_FILES


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of leader and workers of every LeaderWorkerSet in the document."""
    for item in of_kind(document, "LeaderWorkerSet"):
        from shardlint.manifests import _pods  # only where there is a pod to read

        size = _pods.number(item.get("spec", "leaderWorkerTemplate", "size"))
        base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))._replace(
            pods=size or Located(1, origin="default", source="a LeaderWorkerSet without a size"),
        )
        base = base._replace(group=f"{base.name}:{base.at.line}:{base.at.column}")
        yield from _roles(item, base, document)


def _roles(item: Mapping, base: Launch, document: Document) -> Iterator[Launch]:
    """Leader and worker; a worker template alone serves both."""
    from shardlint.manifests import _pods

    template = item.get("spec", "leaderWorkerTemplate")
    leader = template.get("leaderTemplate", "spec") if template else None
    worker = template.get("workerTemplate", "spec") if template else None
    for role, spec in (("leader", leader), ("worker", worker)):
        role = role if leader is not None else ""
        yield from _pods.launches(spec, base._replace(role=role), document, _variables(base.pods, role))


def _variables(size: Maybe[int] | None, role: str) -> dict[str, Maybe[str]]:
    """What the controller adds to every container."""
    at_run_time = Unknown("set when the pod starts, by the LeaderWorkerSet controller")
    text = size.with_value(str(size.value)) if isinstance(size, Located) else size or at_run_time
    leads = role == "leader"
    return {
        "LWS_GROUP_SIZE": text,
        "LWS_LEADER_ADDRESS": at_run_time,
        "LWS_WORKER_INDEX": Located("0", origin="derived", source="the leader's index") if leads else at_run_time,
    }
