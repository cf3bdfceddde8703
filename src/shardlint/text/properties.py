"""Java properties: keys and values with their places, by the rules of `java.util.Properties.load`.

A `#` begins a comment only at the start of a line: behind a value it is part of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.findings.records import NamedTuple
from shardlint.text.source import Fragment, Source

_LINE = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|.|\Z))*", re.DOTALL)
_BLANK = re.compile(r"[ \t\f]*")
_NEXT = re.compile(r"[ \t\f\r\n]*")
_KEY = re.compile(r"(?:[^\\ \t\f=:\r\n]|\\(?:\r\n|.))+", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:\r\n[ \t\f]*|[\r\n][ \t\f]*|u[0-9A-Fa-f]{4}|.|\Z)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One line, those that it goes on in included."""

    key: Fragment
    value: Fragment


def properties(source: Source) -> Iterator[Property]:
    """The properties of a file in their order; of those with one key the last one holds."""
    text = source.text
    at = 1 if text.startswith("\ufeff") else 0
    while (at := _end(_NEXT, text, at)) < len(text):
        if text[at] in "#!":
            at = next((place for place in range(at, len(text)) if text[place] in "\r\n"), len(text))
            continue
        line_end = _end(_LINE, text, at)
        key_end = _end(_KEY, text, at, line_end)
        start = _end(_SEPARATOR, text, key_end, line_end)
        yield Property(_unescaped(source, at, key_end), _unescaped(source, start, line_end))
        at = max(line_end, at + 1)


def _end(pattern: re.Pattern[str], text: str, start: int, end: int | None = None) -> int:
    match = pattern.match(text, start, len(text) if end is None else end)
    return start if match is None else match.end()


def _unescaped(source: Source, start: int, end: int) -> Fragment:
    """A stretch of the file with its escapes replaced and its lines joined."""
    characters: list[str] = []
    offsets: list[int] = []
    at = start
    for escape in _ESCAPE.finditer(source.text, start, end):
        characters += source.text[at : escape.start()]
        offsets += range(at, escape.start())
        if escape[0][1:2] not in ("", "\r", "\n"):
            characters.append(_meant(escape[0][1:]))
            offsets.append(escape.start())
        at = escape.end()
    characters += source.text[at:end]
    offsets += range(at, end)
    return Fragment("".join(characters), source, [*offsets, end])


def _meant(escaped: str) -> str:
    return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _CONTROLS.get(escaped, escaped)
