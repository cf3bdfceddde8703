"""Kubernetes Pod."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "k8s-pod"
FILES = YAML_FILES
KINDS = ("Pod",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every Pod in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        yield from _pods.launches(item.get("spec"), _pods.launch_of(item, NAME), document)
