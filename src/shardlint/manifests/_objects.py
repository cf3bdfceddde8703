"""Kubernetes objects of a document: itself, or what a List or an OpenShift Template holds; and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from shardlint.findings import Span
from shardlint.text.documents import Document, documents
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Source

YAML_FILES = ("*.yaml", "*.yml", "*.json")
"""Names that files of Kubernetes objects have."""
_DEPTH = 4
"""Lists inside lists that are followed; kubectl knows one."""


def text(node: Node | None) -> str:
    """A scalar's text, blanks around it cut; empty for anything else."""
    return node.text.strip() if isinstance(node, Scalar) and not node.is_null else ""


def kind(node: Node) -> str:
    return text(node.get("kind"))


def objects(root: Node | None, depth: int = _DEPTH) -> Iterator[Mapping]:
    """The objects of one document."""
    if not isinstance(root, Mapping):
        return
    held = root.get("objects" if kind(root) == "Template" else "items")
    if (kind(root) == "Template" or kind(root).endswith("List")) and isinstance(held, Sequence):
        for item in held if depth else ():
            yield from objects(item, depth - 1)
    else:
        yield root


def of_kind(document: Document, *kinds: str) -> Iterator[Mapping]:
    """The document's objects of these kinds."""
    return (item for item in objects(document.root) if kind(item) in kinds)


def beside(document: Document, name: str, *kinds: str) -> Mapping | None:
    """The object of a kind and name in the same file."""
    for item in _objects_of_file(document.source):
        if kind(item) in kinds and text(item.get("metadata", "name")) == name:
            return item
    return None


@lru_cache(maxsize=4)
def _objects_of_file(source: Source) -> tuple[Mapping, ...]:
    return tuple(item for document in documents(source).documents for item in objects(document.root))


def name(item: Mapping) -> str:
    """`Kind/name`; the kind alone where no name is written."""
    named = text(item.get("metadata", "name")) or text(item.get("metadata", "generateName"))
    return f"{kind(item)}/{named}" if named else kind(item)


def place(item: Mapping) -> Span:
    """Where the object's name stands."""
    named = item.get("metadata", "name") or item.get("metadata", "generateName") or item.get("kind")
    return (named or item).span
