"""Kubernetes Deployment: copies of one pod."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shardlint.deployment import Launch
from shardlint.manifests import _pods
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "k8s-deployment"
FILES = YAML_FILES


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every Deployment in the document."""
    for item in of_kind(document, "Deployment"):
        base = replace(_pods.launch_of(item, NAME), replicas=_pods.number(item.get("spec", "replicas")))
        yield from _pods.launches(item.get("spec", "template", "spec"), base, document)
