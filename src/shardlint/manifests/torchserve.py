"""TorchServe: the configuration of a model whose handler starts vLLM."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "torchserve"
FILES = YAML_FILES
KEYS = ("handler",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The engine inside the handler."""
    handler = document.root.get("handler") if document.root is not None else None
    if isinstance(handler, Mapping) and isinstance(handler.get("vllm_engine_config"), Mapping):
        from shardlint.manifests import _torchserve_model  # few files are of the form

        yield _torchserve_model.launch_of(document, handler, NAME)
