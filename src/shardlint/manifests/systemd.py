"""Units of systemd, and Podman's quadlets, of which it makes such units."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "systemd"
FILES = ("*.service", "*.container")
LANGUAGES = ("unit",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of a unit's commands, or of its container."""
    from shardlint.manifests import _units  # only units need it

    yield from _units.launches_of(document.source, NAME, library)
