"""AIBrix: StormService with its roles, PodSet, and fleets of Ray clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, kind, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import Library

NAME = "aibrix"
FILES = YAML_FILES
KINDS = ("StormService", "RoleSet", "PodSet", "RayClusterFleet", "RayClusterReplicaSet")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every role, and of every Ray cluster, that an object of AIBrix holds."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        spec = item.get("spec")
        base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
        if spec is None:
            continue
        if kind(item).startswith("RayCluster"):
            yield from _of_cluster(spec, base, document)
        elif kind(item) == "PodSet":
            yield from _pods_of(spec, base._replace(pods=_pods.number(spec.get("podGroupSize"))), document, {})
        else:
            yield from _of_roles(item, spec, base, document)


def _of_cluster(spec: Node, base: Launch, document: Document) -> Iterator[Launch]:
    from shardlint.manifests import _ray_cluster

    cluster = spec.get("template", "spec")
    if cluster is not None:
        yield from _ray_cluster.launches(cluster, base, document)


def _of_roles(item: Mapping, spec: Node, base: Launch, document: Document) -> Iterator[Launch]:
    """`podGroupSize` pods of a role make one engine instance."""
    from shardlint.manifests import _pods, _roles

    held = spec if kind(item) == "RoleSet" else spec.get("template", "spec")
    for entry in _roles.entries(held.get("roles") if held is not None else None):
        size = _pods.number(entry.get("podGroupSize"))
        own = _roles.role(base, entry.get("name") or "", entry.get("replicas"), size)
        known = {"ROLE_NAME": _named(entry.get("name")), "STORM_SERVICE_NAME": _named(item.get("metadata", "name"))}
        yield from _pods_of(entry, own, document, known)


def _pods_of(holder: Node, base: Launch, document: Document, known: dict[str, Maybe[str]]) -> Iterator[Launch]:
    """The pods of one template, with what the controller adds to their containers."""
    from shardlint.manifests import _pods, _roles

    at_run_time = Unknown("set when the pod starts, by AIBrix")
    given: dict[str, Maybe[str]] = {
        "ROLESET_NAME": at_run_time,
        "ROLESET_INDEX": at_run_time,
        "ROLE_REPLICA_INDEX": at_run_time,
        "PODSET_NAME": at_run_time,
        "POD_GROUP_INDEX": at_run_time,
        "POD_GROUP_SIZE": _roles.as_text(base.pods, at_run_time),
    }
    yield from _pods.launches(holder.get("template", "spec"), base, document, {**given, **known})


def _named(node: Node | None) -> Maybe[str]:
    """A name as the value of a variable."""
    written = text(node)
    if node is None or not written or node.templated or "$" in written:
        return Unknown("set when the pod starts, by AIBrix")
    return Located(written, node.span, node.spelled)
