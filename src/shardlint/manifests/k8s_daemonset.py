"""Kubernetes DaemonSet: one pod on each of the nodes that match."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Unknown
from shardlint.manifests._objects import YAML_FILES, of_kind, place
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "k8s-daemonset"
FILES = YAML_FILES
KINDS = ("DaemonSet",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every DaemonSet in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        copies = Unknown("a DaemonSet runs one pod on every matching node", place(item))
        base = _pods.launch_of(item, NAME)._replace(replicas=copies)
        yield from _pods.launches(item.get("spec", "template", "spec"), base, document)
