"""Numbers of GPUs that a file allows its pods: quotas of a namespace, of a queue, of a pool of nodes."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.findings import Maybe
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _devices
from shardlint.manifests._objects import kind, of_kind_in_file, text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

KINDS = ("ResourceQuota", "NodePool", "ClusterQueue")
_GPU = Pattern(r"(?:(?:requests|limits)\.)?(?:nvidia|amd)\.com/gpu")


def quota(document: Document) -> Maybe[int] | None:
    """The GPUs that the pods of a document may have together, by the first such object of its file; None without."""
    if not any(map(document.source.holds, KINDS)):
        return None
    own = text(document.root.get("metadata", "namespace")) if document.root is not None else ""
    for item in of_kind_in_file(document.source, *KINDS):
        space = text(item.get("metadata", "namespace"))
        if kind(item) != "ResourceQuota" or own in ("", space) or not space:
            found = next(_amounts(item), None)
            if found is not None:
                return found
    return None


def _amounts(item: Mapping) -> Iterator[Maybe[int]]:
    """What one object says of GPUs; of the flavours of a queue the sum."""
    for fields in (item.get("spec", "hard"), item.get("spec", "limits")):
        for key, amount in fields.items() if isinstance(fields, Mapping) else ():
            if _GPU.fullmatch(key.text.strip()) and isinstance(amount, Scalar):
                yield _devices.count(value_of(amount))
    nominal = list(_nominal(item.get("spec", "resourceGroups")))
    if (total := _devices.added(nominal)) is not None:
        yield total


def _nominal(groups: Node | None) -> Iterator[Maybe[int]]:
    """The GPUs of every flavour of a queue."""
    for group in _entries(groups):
        for flavour in _entries(group.get("flavors")):
            for resource in _entries(flavour.get("resources")):
                amount = resource.get("nominalQuota")
                if _GPU.fullmatch(text(resource.get("name"))) and isinstance(amount, Scalar):
                    yield _devices.count(value_of(amount))


def _entries(node: Node | None) -> Iterator[Node]:
    return iter(node) if isinstance(node, Sequence) else iter(())
