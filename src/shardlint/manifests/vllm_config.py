"""Files of flags (`vllm serve --config FILE`) that no manifest beside them names: bare keys, no kind, no services."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "vllm-config"
FILES = YAML_FILES
WITHOUT = ("kind", "apiVersion", "services")
"""Keys that no engine has a flag for: most YAML has one of them."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The command that names this very file; what else it may say is open where the file names no model."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    from shardlint.manifests import _flag_files  # few files are of the form

    yield from _flag_files.launches_of(root, NAME)
    if isinstance(root.get("model"), Mapping):
        from shardlint.manifests import _own_config

        yield from _own_config.launches_of(root, NAME)
