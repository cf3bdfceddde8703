"""ServingRuntime and ClusterServingRuntime of KServe and OME: what is started for every service that names them.

A runtime that a service in the same file names is read with that service.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES, of_kind
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "kserve-servingruntime"
FILES = YAML_FILES
KINDS = ("ServingRuntime", "ClusterServingRuntime")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every runtime in the document that no service of its file uses."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods, _runtimes  # only where there is a runtime to read

        if not _runtimes.service_of(item, document):
            yield from _runtimes.launches(item, _pods.launch_of(item, NAME), document)
