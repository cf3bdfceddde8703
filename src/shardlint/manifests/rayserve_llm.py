"""Ray Serve's own YAML: applications with LLM configs, and files that hold one LLM config."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Scalar, Sequence
from shardlint.text.source import Library

NAME = "rayserve-llm"
FILES = YAML_FILES
KEYS = ("applications", "model_loading_config", "engine_config")
WITHOUT = ("kind",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every application, or of the one LLM config that the file is."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    if isinstance(applications := root.get("applications"), Sequence):
        from shardlint.manifests import _ray_serve  # few files are of the form

        for application in applications:
            if isinstance(application, Mapping) and isinstance(path := application.get("import_path"), Scalar):
                called = text(application.get("name")) or path.text
                base = Launch(f"application/{called}", "application", NAME, path.span, unit=f"{path.span.line}")
                yield from _ray_serve.launches_of(application, base)
    else:
        from shardlint.manifests import _ray_serve

        if _ray_serve.is_llm_config(root):
            name = document.source.path.replace("\\", "/").rpartition("/")[2]
            at = next(iter(root.items()))[0].span
            yield from _ray_serve.of_llm_config(root, Launch(name, "LLMConfig", NAME, at, unit=name))
