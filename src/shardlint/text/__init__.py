"""Text that knows where it stands: YAML, JSON, shell, comments, templates. Knows nothing of deployments."""

from shardlint.text.documents import Document, Kind, Parsed, documents, kind_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence, duplicates_below, walk
from shardlint.text.source import MASK, Fragment, Library, ModelFiles, Source

__all__ = [
    "MASK",
    "Document",
    "Fragment",
    "Kind",
    "Library",
    "Mapping",
    "ModelFiles",
    "Node",
    "Parsed",
    "Scalar",
    "Sequence",
    "Source",
    "documents",
    "duplicates_below",
    "kind_of",
    "walk",
]
