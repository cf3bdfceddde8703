"""Compose files: services, their commands, and the cards that they reserve."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "docker-compose"
FILES = ("*compose*.yaml", "*compose*.yml")
KEYS = ("services",)
WITHOUT = ("apiVersion",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every service, whatever its profile."""
    services = document.root.get("services") if document.root is not None else None
    if not isinstance(services, Mapping):
        return
    from shardlint.manifests import _compose  # only Compose files need it

    yield from _compose.launches_of(services, NAME, document, library)
