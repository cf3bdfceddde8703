"""Shell scripts: engine commands as they stand, in containers, and manifests in here-documents."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "shell-script"
FILES = ("*.sh", "*.bash")
LANGUAGES = ("shell",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every command of a script, each named after the file."""
    if document.script is None or "#SBATCH" in document.script.text:
        return
    from shardlint.manifests._scripts import launches_of  # only scripts need it

    yield from launches_of(document.script, NAME, library)
