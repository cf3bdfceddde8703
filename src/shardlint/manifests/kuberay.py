"""KubeRay: RayService with its Serve config, RayJob and RayCluster with the commands that they run."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES, kind, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "kuberay-rayservice"
FILES = YAML_FILES
KINDS = ("RayService", "RayJob", "RayCluster")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every object of KubeRay in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _kuberay  # only where there is one

        read = {"RayService": _kuberay.service, "RayJob": _kuberay.job, "RayCluster": _kuberay.cluster}
        yield from read[kind(item)](item, NAME, document, library)
