"""Nightly configurations of vLLM-Ascend: test cases of one host, and deployments over several with NPUs."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Sequence
from shardlint.text.source import Library

NAME = "ascend"
FILES = YAML_FILES
KEYS = ("test_cases", "deployment", "templates")
WITHOUT = ("kind",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The engines of every test case, or of every group of nodes."""
    root = document.root
    if isinstance(root, Mapping) and any(isinstance(root.get(key), Sequence) for key in KEYS):
        from shardlint.manifests import _ascend_nodes  # few files are of the form

        yield from _ascend_nodes.launches_of(root, NAME)
