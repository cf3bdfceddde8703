"""vLLM production-stack: values of its chart, and the VLLMRuntime objects of its operator."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "prodstack-values"
FILES = YAML_FILES
KINDS = ("VLLMRuntime",)
WITHOUT = ("kind",)
KEY = "servingEngineSpec"
"""What the values of this chart have and no others."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every model of the values, and of every VLLMRuntime."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _prodstack  # few manifests are of the form

        yield from _prodstack.of_runtime(item, NAME, document)
    if not isinstance(document.root, Mapping) or not document.source.holds(KEY) or "kind" in document.root:
        return
    from shardlint.manifests import _chart_parts, _prodstack

    for values in _chart_parts.with_key(document.root, KEY):
        yield from _prodstack.of_values(values, NAME, document)
