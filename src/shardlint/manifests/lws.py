"""LeaderWorkerSet: groups of pods, one leader and its workers each, that make one engine instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Node
from shardlint.text.source import Library

NAME = "lws"
FILES = YAML_FILES
KINDS = ("LeaderWorkerSet",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of leader and workers of every LeaderWorkerSet in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
        yield from of_template(item.get("spec", "leaderWorkerTemplate"), base, document)


def of_template(template: Node | None, base: Launch, document: Document) -> Iterator[Launch]:
    """Leader and workers by their templates; a worker template alone serves both."""
    from shardlint.manifests import _pods, _roles

    if template is None:
        return
    size = _pods.number(template.get("size"))
    pods = size or Located(1, origin="default", source="a LeaderWorkerSet without a size")
    leader, worker = template.get("leaderTemplate", "spec"), template.get("workerTemplate", "spec")
    yield from _roles.group(leader, worker, base._replace(pods=pods), document, lambda role: _variables(pods, role))


def _variables(size: Maybe[int] | None, role: str) -> dict[str, Maybe[str]]:
    """What the controller adds to every container."""
    from shardlint.manifests import _roles

    at_run_time = Unknown("set when the pod starts, by the LeaderWorkerSet controller")
    leads = role == "leader"
    return {
        "LWS_GROUP_SIZE": _roles.as_text(size, at_run_time),
        "LWS_LEADER_ADDRESS": at_run_time,
        "LWS_WORKER_INDEX": Located("0", origin="derived", source="the leader's index") if leads else at_run_time,
    }
