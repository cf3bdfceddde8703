"""Values of a chart inside those of charts that depend on it."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.text.nodes import Mapping

DEEPEST = 3
"""Names of dependencies above the values of a chart; real ones have two."""


def with_key(values: Mapping, key: str, depth: int = 0) -> Iterator[Mapping]:
    """The mappings that have a key, the outermost of each branch."""
    if key in values:
        yield values
    elif depth < DEEPEST:
        for _, below in values.items():
            if isinstance(below, Mapping):
                yield from with_key(below, key, depth + 1)
