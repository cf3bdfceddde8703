"""Dockerfiles: what an image starts by its ENTRYPOINT and CMD."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "dockerfile"
FILES = ("*Dockerfile", "*.dockerfile", "Dockerfile.*", "Dockerfile-*", "*Containerfile", "Containerfile.*")
LANGUAGES = ("dockerfile",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """What the last stage starts, and the installers before it, whose pins tell the engine's release."""
    from shardlint.manifests import _stages  # only Dockerfiles need it

    yield from _stages.launches_of(document.source, NAME)
