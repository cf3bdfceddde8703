"""GitHub workflows: servers that the steps of their jobs start."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "github-workflow"
FILES = YAML_FILES
KEYS = ("jobs",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every command in the steps, with the variables of workflow, job and step."""
    root = document.root
    if isinstance(root, Mapping) and "on" in root and isinstance(jobs := root.get("jobs"), Mapping):
        from shardlint.manifests import _workflow  # few files are workflows

        yield from _workflow.launches_of(root, jobs, NAME, library)
