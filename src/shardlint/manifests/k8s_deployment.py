"""Kubernetes Deployment: copies of one pod."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "k8s-deployment"
FILES = YAML_FILES
KINDS = ("Deployment",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every Deployment in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods  # only where there is a pod to read

        base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
        yield from _pods.launches(item.get("spec", "template", "spec"), base, document)
