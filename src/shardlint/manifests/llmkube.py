"""LLMKube: an InferenceService of `inference.llmkube.dev`, and the Model that it refers to."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "llmkube"
FILES = YAML_FILES
KINDS = ("InferenceService",)
GROUP = "inference.llmkube.dev/"


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launch of every InferenceService; the Model may stand in another file of the folder."""
    for item in of_kind(document, *KINDS, group=GROUP):
        from shardlint.manifests import _llmkube  # few objects are of the form

        yield from _llmkube.launches_of(item, NAME, document, library)
