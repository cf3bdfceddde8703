"""Recipes of the vLLM project: a model, its variants, and the arguments that all strategies share."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "vllm-recipe"
FILES = YAML_FILES
KEYS = ("model",)
WITHOUT = ("kind",)
_OWN = ("variants", "compatible_strategies", "strategy_overrides", "hardware_overrides")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """One launch for each variant; the strategy that is chosen adds to its arguments."""
    root = document.root
    if not isinstance(root, Mapping) or root.get("model", "model_id") is None:
        return
    if any(key in root for key in _OWN):
        from shardlint.manifests import _recipe  # few files are of the form

        yield from _recipe.launches_of(root, NAME)
