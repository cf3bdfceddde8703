"""Kustomizations: what overlays make of the files beside them."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._objects import YAML_FILES, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "kustomize"
FILES = YAML_FILES
KINDS = ("Kustomization", "Component")
WITHOUT = ("kind",)
FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of the resources as a kustomization changes them; nothing where it changes none of them."""
    root = document.root
    if not isinstance(root, Mapping) or not _is_kustomization(root, document.source.path):
        return
    from shardlint.manifests import _kustomization  # few files are of the form

    yield from _kustomization.launches_of(document, NAME, library)


def _is_kustomization(root: Mapping, path: str) -> bool:
    """By its kind (Flux has another one of the same name), else by the name of the file: the kind may be left out."""
    if (kind := root.get("kind")) is not None:
        group = text(root.get("apiVersion"))
        return text(kind) in KINDS and (not group or group.startswith("kustomize.config"))
    return path.replace("\\", "/").rpartition("/")[2] in FILE_NAMES
