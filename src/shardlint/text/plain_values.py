"""Nodes as the values that `yaml.safe_load` makes of them, for files whose reader is PyYAML itself."""

from __future__ import annotations

from typing import Any

import yaml

from shardlint.text.nodes import CORE_TAGS, Mapping, Node, Scalar, Sequence

MOST_NODES = 10_000
"""Of one value: aliases inside aliases would double with every level."""
DEEPEST = 50


class NoPlainValue(ValueError):
    """A node that has no value of its own: a template, an application's tag, too much or too deep."""


def plain(node: Node) -> Any:
    """Text, numbers, booleans, None, dates, lists and dicts, by the rules of YAML 1.1. Raises NoPlainValue."""
    return _Plain().value(node, 0)


class _Plain:
    def __init__(self) -> None:
        self.nodes = 0

    def value(self, node: Node, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > DEEPEST:
            raise NoPlainValue("it is too large or nested too deeply")
        if isinstance(node, Mapping):
            return {self.value(key, depth): self.value(value, depth + 1) for key, value in node.items()}
        if isinstance(node, Sequence):
            return [self.value(entry, depth + 1) for entry in node]
        assert isinstance(node, Scalar)
        return _scalar(node)


def _scalar(node: Scalar) -> Any:
    if node.templated:
        raise NoPlainValue("templated")
    if not node.tag.startswith(CORE_TAGS):
        raise NoPlainValue(f"the tag {node.tag} decides it")
    try:
        return yaml.SafeLoader("").construct_object(yaml.ScalarNode(node.tag, node.text))
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise NoPlainValue(f"{node.text[:80]!r} cannot be read as {node.tag.removeprefix(CORE_TAGS)}") from error
