"""Truss (Baseten): `config.yaml` with a start command, a TensorRT-LLM section, or a model of its own code."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "truss"
FILES = YAML_FILES
KEYS = ("docker_server", "resources")
WITHOUT = ("kind",)
_OWN = ("trt_llm", "model_name", "model_metadata", "base_image", "python_version", "model_cache")
"""Keys of a Truss, one of which stands beside its resources."""


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """What the container of the Truss starts."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    if isinstance(root.get("docker_server"), Mapping) or (
        isinstance(root.get("resources"), Mapping) and any(key in root for key in _OWN)
    ):
        from shardlint.manifests import _truss_config  # few files are of the form

        yield from _truss_config.launches_of(root, NAME, library)
