"""SageMaker: endpoints of HyperPod's operator, models of CloudFormation and of the API, recipes of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "sagemaker"
FILES = YAML_FILES
KINDS = ("InferenceEndpointConfig",)
KEYS = ("PrimaryContainer", "Containers", "Resources", "deployment")
WITHOUT = ("kind",)
_API = KEYS[:3]


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The engine of every endpoint's container."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _sagemaker  # few files are of the form

        yield from _sagemaker.endpoint(item, NAME, document)
    root = document.root
    if not isinstance(root, Mapping) or "kind" in root:
        return
    if any(key in root for key in _API):
        from shardlint.manifests import _sagemaker

        yield from _sagemaker.models(root, NAME)
    elif isinstance(deployment := root.get("deployment"), Mapping) and deployment.get("model", "id") is not None:
        from shardlint.manifests import _sagemaker

        yield from _sagemaker.recipe(root, deployment, NAME)
