"""Argo CD Applications that give a chart its values: as a mapping, as text that is YAML, as dotted parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Node, Sequence
from shardlint.text.source import Library

NAME = "argocd"
FILES = YAML_FILES
KINDS = ("Application", "ApplicationSet")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches that the values of every Application and ApplicationSet ask for."""
    for item in of_kind(document, *KINDS):
        spec = item.get("spec") if item.get("spec", "template") is None else item.get("spec", "template", "spec")
        for source in _sources(spec):
            if (helm := source.get("helm")) is not None:
                from shardlint.manifests import _releases  # few objects bring values

                yield from _releases.of_application(item, helm, NAME, document, library)


def _sources(spec: Node | None) -> Iterator[Node]:
    if spec is None:
        return
    if (source := spec.get("source")) is not None:
        yield source
    several = spec.get("sources")
    yield from several if isinstance(several, Sequence) else ()
