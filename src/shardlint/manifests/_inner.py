"""YAML that lies as text inside a value of another document: documents of their own, whose places are the file's."""

from __future__ import annotations

from shardlint.text.documents import Parsed
from shardlint.text.nodes import Scalar
from shardlint.text.source import Fragment, Inset


def documents_in(scalar: Scalar) -> Parsed:
    """The documents of the text. A template in it is one to them too."""
    from shardlint.text import yaml

    fragment = scalar.fragment()
    return yaml.documents(Inset(Fragment(fragment.restored(), fragment.source, fragment.offsets)))
