"""Slurm: batch scripts with `#SBATCH` directives, and the recipes of srt-slurm, which makes such a script of them."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "slurm-sbatch"
FILES = ("*.sbatch", "*.slurm", *YAML_FILES)
LANGUAGES = ("shell",)
KEYS = ("base", "model")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of a batch script's commands, on the nodes that it asks for; those of a recipe's workers."""
    if document.script is not None:
        if "#SBATCH" in document.script.text:
            from shardlint.manifests import _slurm  # few scripts are for Slurm

            yield from _slurm.launches_of(document.script, NAME, library)
        return
    root = document.root
    recipe = root.get("base") if isinstance(root, Mapping) and "base" in root else root
    if isinstance(recipe, Mapping) and recipe.get("model", "container") is not None and "resources" in recipe:
        from shardlint.manifests import _srt  # few files are recipes

        yield from _srt.launches_of(recipe, NAME)
