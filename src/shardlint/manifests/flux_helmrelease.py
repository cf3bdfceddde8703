"""Flux HelmReleases: a chart's values inline, and those in ConfigMaps beside them."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "flux-helmrelease"
FILES = YAML_FILES
KINDS = ("HelmRelease", "HelmChart")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches that the values of every HelmRelease ask for."""
    for item in of_kind(document, *KINDS):
        if item.get("spec") is not None:
            from shardlint.manifests import _releases  # few objects bring values

            yield from _releases.of_release(item, NAME, document, library)
