"""llm-d: values of the chart llm-d-modelservice, with prefill and decode as deployments of their own."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "llmd-values"
FILES = YAML_FILES
WITHOUT = ("kind",)
KEY = "modelArtifacts"
"""What the values of this chart have and no others."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of both roles, where the values are the document's or stand under the names of dependencies."""
    if not isinstance(document.root, Mapping) or not document.source.holds(KEY):
        return
    from shardlint.manifests import _chart_parts, _llmd  # few values are of this chart

    for values in _chart_parts.with_key(document.root, KEY):
        yield from _llmd.launches_of(values, NAME, document)
