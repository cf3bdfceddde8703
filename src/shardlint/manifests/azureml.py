"""Azure Machine Learning: managed online deployments whose container starts an engine."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "azureml"
FILES = YAML_FILES
KEYS = ("$schema", "endpoint_name")
WITHOUT = ("kind",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The engine of the deployment's container."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    if "azureml" in text(root.get("$schema")).lower() or ("endpoint_name" in root and "instance_type" in root):
        from shardlint.manifests import _azureml_deployment  # few files are of the form

        yield _azureml_deployment.launch_of(root, NAME)
