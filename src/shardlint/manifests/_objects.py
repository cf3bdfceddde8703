"""Kubernetes objects of a document: itself, or what a List or an OpenShift Template holds; and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from shardlint.findings import Span
from shardlint.text.documents import Document, documents
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Source

YAML_FILES = (
    "*.yaml", "*.yml", "*.json", "*.yaml-template", "*.yml-template", "*.yaml.template", "*.yml.template",
    "*.tpl", "*.yaml.tmpl", "*.yml.tmpl", "*.yaml.j2", "*.yml.j2", "*.yaml.gotmpl",
)  # fmt: skip
"""Names that files of Kubernetes objects have, and templates of them."""


def text(node: Node | None) -> str:
    """A scalar's text, blanks around it cut; empty for anything else."""
    return node.text.strip() if isinstance(node, Scalar) and not node.is_null else ""


def kind(node: Node) -> str:
    return text(node.get("kind"))


def objects(root: Node | None) -> Iterator[tuple[Mapping, str]]:
    """The objects of one document with their kinds, each once however often it is aliased."""
    seen: set[Node] = set()
    waiting = [root]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, Mapping) or item in seen:
            continue
        seen.add(item)
        own = kind(item)
        held = item.get("objects" if own == "Template" else "items") if own.endswith(("Template", "List")) else None
        if isinstance(held, Sequence) and (own == "Template" or own.endswith("List")):
            waiting.extend(reversed(list(held)))
        else:
            yield item, own


def of_kind(document: Document, *kinds: str, group: str = "") -> Iterator[Mapping]:
    """The document's objects of these kinds whose API group has that name in its own."""
    return (item for item, own, version in typed_objects(document.root) if own in kinds and group in version)


@lru_cache(maxsize=1)
def typed_objects(root: Node | None) -> tuple[tuple[Mapping, str, str], ...]:
    """The objects of the document at hand with their kinds and API versions: every form of object asks for them."""
    return tuple((item, own, text(item.get("apiVersion"))) for item, own in objects(root))


def beside(document: Document, name: str, *kinds: str) -> Mapping | None:
    """The object of a kind and name in the same file."""
    return next(
        (item for item in of_kind_in_file(document.source, *kinds) if text(item.get("metadata", "name")) == name), None
    )


def of_kind_in_file(source: Source, *kinds: str) -> Iterator[Mapping]:
    """The objects of these kinds in all documents of a file."""
    return (item for item, own in objects_of_file(source) if own in kinds)


@lru_cache(maxsize=16)
def objects_of_file(source: Source) -> tuple[tuple[Mapping, str], ...]:
    """The objects of all documents of a file with their kinds."""
    return tuple(pair for document in documents(source).documents for pair in objects(document.root))


def name(item: Mapping) -> str:
    """`Kind/name`; the kind alone where no name is written."""
    named = text(item.get("metadata", "name")) or text(item.get("metadata", "generateName"))
    return f"{kind(item)}/{named}" if named else kind(item)


def place(item: Mapping) -> Span:
    """Where the object's name stands."""
    named = item.get("metadata", "name") or item.get("metadata", "generateName") or item.get("kind")
    return (named or item).span
