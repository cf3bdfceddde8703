"""TensorRT-LLM: files of options for its LLM API, and those of disaggregated servers."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "trtllm"
FILES = YAML_FILES
WITHOUT = ("kind", "apiVersion", "services", "model_loading_config", "resources")
"""Keys that no such file has."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The server that is given the file; of a disaggregated one those of both phases."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    from shardlint.manifests import _trtllm_options  # cheap to ask: it looks at the keys

    yield from _trtllm_options.launches_of(root, NAME)
