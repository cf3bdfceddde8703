"""NVIDIA Dynamo: DynamoGraphDeployment and its components, and the configuration files of `dynamo serve`."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "dynamo-dgd"
FILES = YAML_FILES
KINDS = ("DynamoGraphDeployment", "DynamoComponentDeployment")
WITHOUT = ("kind", "apiVersion", "services")
"""Keys that no configuration of `dynamo serve` has, and most YAML has."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every service of a graph that may be an engine."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _dynamo  # few manifests are of the form

        yield from _dynamo.launches_of(item, NAME, document)
    root = document.root
    if isinstance(root, Mapping) and any(
        isinstance(service, Mapping) and "ServiceArgs" in service for _, service in root.items()
    ):
        from shardlint.manifests import _dynamo_config

        yield from _dynamo_config.launches_of(root, NAME)
