"""dstack: services and tasks, their commands and the cards that they ask for."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "dstack"
FILES = YAML_FILES
KEYS = ("type",)
WITHOUT = ("kind",)
_TYPES = ("service", "task", "dev-environment")
_OWN = ("commands", "image", "entrypoint", "replicas", "init")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """What the configuration starts on each of its nodes."""
    root = document.root
    if not isinstance(root, Mapping) or text(root.get("type")) not in _TYPES:
        return
    if any(key in root for key in _OWN):
        from shardlint.manifests import _dstack_run  # few files are of the form

        yield from _dstack_run.launches_of(root, NAME, library)
