"""JSON text -> nodes with exact places, of the same kind as the YAML composer's.

YAML's composer refuses surrogate pairs, keys over 1024 characters and some blanks that JSON allows.  `json` says
first whether the text is valid, so this reads on trust.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

from shardlint.text.nodes import CORE_TAGS

_TOKEN = re.compile(r'[ \t\n\r]*(?:("(?:[^"\\]|\\.)*+")|([^\s"{}\[\],:]+)|([{}\[\],:]))', re.DOTALL)
_STRING = CORE_TAGS + "str"
_NAMES: Final = {"null": CORE_TAGS + "null", "true": CORE_TAGS + "bool", "false": CORE_TAGS + "bool"}
_ESCAPE = re.compile(r"\\(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u[0-9A-Fa-f]{4}|.)")
_LONE = re.compile("[\ud800-\udfff]")


class _Mark:
    """The part of PyYAML's mark that nodes are asked for."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def _mark(index: int) -> Any:
    return _Mark(index)


def compose(text: str, start: int) -> Any:
    """The root node of one JSON value. Raises ValueError (with `pos` where it knows it) or RecursionError."""
    json.loads(text[start:], parse_int=str, parse_float=str)
    open_nodes: list[Any] = []
    keys: list[Any] = []
    root: Any = None
    at = start
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        mark = token[3]
        if mark in ("}", "]"):
            node = open_nodes.pop()
            node.end_mark = _mark(at)
            continue
        if mark in (",", ":"):
            continue
        node = _opened(mark, at) if mark else _scalar(token)
        if open_nodes:
            _put(open_nodes[-1], node, keys)
        root = root or node
        if mark:
            open_nodes.append(node)
    return root


def _opened(mark: str, at: int) -> Any:
    if mark == "{":
        return yaml.MappingNode(CORE_TAGS + "map", [], _mark(at - 1), None, flow_style=True)
    return yaml.SequenceNode(CORE_TAGS + "seq", [], _mark(at - 1), None, flow_style=True)


def _put(into: Any, node: Any, keys: list[Any]) -> None:
    """A member of an array; in an object by turns a key (kept until its value comes) and a value."""
    if into.id == "sequence":
        into.value.append(node)
    elif keys and keys[-1][0] is into:
        into.value.append((keys.pop()[1], node))
    else:
        keys.append((into, node))


def _scalar(token: re.Match[str]) -> Any:
    group = 1 if token[1] is not None else 2
    first, last = _mark(token.start(group)), _mark(token.end(group))
    if group == 2:
        tag = _NAMES.get(token[2], CORE_TAGS + ("float" if re.search(r"[.eENI]", token[2]) else "int"))
        return yaml.ScalarNode(tag, token[2], first, last, style="")
    value = token[1][1:-1]
    if "\\" in value:
        value = _LONE.sub("\ufffd", json.loads(token[1]))
    return yaml.ScalarNode(_STRING, value, first, last, style='"')


def decode(raw: str, base: int) -> Sequence[int]:
    """Places of the characters of a JSON string written as `raw` (quotes included) at `base`, and of its end."""
    offsets: list[int] = []
    at = 1
    for escape in _ESCAPE.finditer(raw):
        offsets += range(base + at, base + escape.start())
        offsets.append(base + escape.start())
        at = escape.end()
    return [*offsets, *range(base + at, base + len(raw))]
