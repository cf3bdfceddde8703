"""SkyPilot tasks: the script that every node runs, and the cards that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Scalar
from shardlint.text.source import Library

NAME = "skypilot"
FILES = YAML_FILES
KEYS = ("run",)
WITHOUT = ("kind",)
_OTHERS = ("resources", "num_nodes", "envs", "setup", "service", "workdir", "file_mounts")
"""Keys of a task, one of which stands beside its script."""


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """What the task's script starts, behind what its setup installs."""
    root = document.root
    if not isinstance(root, Mapping) or not isinstance(root.get("run"), Scalar):
        return
    if any(key in root for key in _OTHERS):
        from shardlint.manifests import _sky_task  # few files are of the form

        yield from _sky_task.launches_of(root, NAME, library)
