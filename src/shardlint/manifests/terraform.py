"""Terraform: Kubernetes objects, charts, containers and startup scripts that its resources make."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "terraform"
FILES = ("*.tf",)
LANGUAGES = ("terraform",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every resource in the file, variables and locals of its folder replaced."""
    from shardlint.manifests import _terraform  # only Terraform needs it

    yield from _terraform.launches_of(document, NAME, library)
