"""Where a key of a JSON text stands, found without parsing the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from shardlint.findings import Span
from shardlint.findings.patterns import Pattern
from shardlint.text.source import Source

DEEPEST = 4
_TOKEN = Pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]')
_GAP = Pattern(r"\s*:\s*")
_VALUE_END = Pattern(r"[,}\]\n\r]")


def place_of(source: Source, path: Sequence[str]) -> Span | None:
    """The span of the value under the keys `path` (objects only), or None where the text has no such key.

    Of a key that is written twice the last one counts, as it does for `json.loads`. Keys deeper than
    `DEEPEST` are not found.
    """
    start = _value_starts(source).get(tuple(path))
    return None if start is None else _value_span(source, start)


@lru_cache(maxsize=32)
def _value_starts(source: Source) -> dict[tuple[str, ...], int]:
    """Where the value of every key begins, found in one pass over the text."""
    starts: dict[tuple[str, ...], int] = {}
    text = source.text
    keys: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            keys.append("")
        elif mark in "}]":
            del keys[-1:]
        elif 0 < len(keys) <= DEEPEST and (gap := _GAP.match(text, token.end())):
            keys[-1] = json.loads(mark, strict=False)
            starts[tuple(keys)] = gap.end()
    return starts


def _value_span(source: Source, start: int) -> Span:
    """A number, a word or a string is covered whole; of a list or an object only the opening bracket."""
    text = source.text
    if text[start : start + 1] in ("{", "["):
        return source.span(start, start + 1)
    if string := _TOKEN.match(text, start):
        return source.span(start, string.end())
    end = _VALUE_END.search(text, start)
    return source.span(start, len(text[start : end.start() if end else None].rstrip()) + start)
