"""Layouts that a manifest states in fields of its own, as the command and the settings that a controller makes of them.

A form that has no command line to read says which engine its controller starts (`command`), and which of its fields
are that engine's arguments (`entries` of a whole mapping of arguments, `entry` for a field with a name of its own).
"""

from __future__ import annotations

from shardlint.deployment import ConfigEntry, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.text.nodes import Mapping, Node, Scalar

VLLM = ("vllm", "serve")
SGLANG = ("python3", "-m", "sglang.launch_server")


def command(words: tuple[str, ...], at: Span, model: Maybe[str] | None = None) -> tuple[Word, ...]:
    """The words that a controller writes: the engine's command, and the model where it stands alone behind it."""
    derived = tuple(Located(word, at, origin="derived") for word in words)
    return derived if model is None else (*derived, model)


def entries(arguments: Node | None, *, with_nulls: bool = False) -> tuple[ConfigEntry, ...]:
    """The keys of a mapping of arguments (`engine_kwargs`), which may be written as flags; a null sets nothing but in a
    file of the engine's own."""
    if not isinstance(arguments, Mapping):
        return ()
    return tuple(
        ConfigEntry(
            Located(key.text if with_nulls else key.text.removeprefix("--"), key.span, key.text), value_of(value)
        )
        for key, value in arguments.items()
        if with_nulls or not _is_null(value)
    )


def entry(flag: str, fields: Node | None, *path: str) -> tuple[ConfigEntry, ...]:
    """The argument `--flag` from the field of another name that lies at a path; nothing where it is not written."""
    node = fields.get(*path) if fields is not None else None
    if node is None or _is_null(node):
        return ()
    return (ConfigEntry(Located(flag, node.span, path[-1], "derived"), value_of(node)),)


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null


def value_of(node: Node) -> Located[object] | Unknown:
    """A node as the value that the engine's YAML reader makes of it."""
    from shardlint.text.plain_values import NoPlainValue, plain  # few manifests have such a value

    try:
        return Located(plain(node), node.span, node.spelled)
    except NoPlainValue as reason:
        return Unknown(str(reason), node.span, node.spelled)
