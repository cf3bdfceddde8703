"""Unit files of systemd and Podman -> their entries, lines put together, each character at its place."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.findings.records import NamedTuple
from shardlint.text.source import Fragment, Source


class Entry(NamedTuple):
    """`Key=value` under `[Section]`; a value that goes on in the next line has a blank for the end of each."""

    section: str
    key: str
    value: Fragment


def entries(source: Source) -> Iterator[Entry]:
    """The entries of a unit file; lines that are none are passed over. Never raises for what the file says."""
    section = ""
    for line in _logical_lines(source):
        text = line.text
        if text.startswith("[") and "]" in text:
            section = text[1 : text.index("]")]
            continue
        key, equals, _ = text.partition("=")
        if equals:
            start = len(key) + 1
            start += len(text[start:]) - len(text[start:].lstrip())
            yield Entry(section, key.strip(), line.part(start, len(text)))


def _logical_lines(source: Source) -> Iterator[Fragment]:
    """Lines without blanks around them; comments are left out, among the lines that belong together too."""
    text, at = source.text, 0
    offsets: list[int] = []
    characters: list[str] = []
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start, at = at, end + 1
        line = text[start:end].rstrip("\r \t")
        begin = start + len(line) - len(line.lstrip(" \t"))
        if line.lstrip(" \t")[:1] in ("#", ";"):
            continue
        goes_on = line.endswith("\\")
        stop = start + len(line) - goes_on
        offsets += range(begin, stop)
        characters.append(text[begin:stop])
        if goes_on:
            offsets.append(stop)
            characters.append(" ")
        elif offsets:
            yield Fragment("".join(characters), source, [*offsets, offsets[-1] + 1])
            offsets, characters = [], []
    if offsets:
        yield Fragment("".join(characters), source, [*offsets, offsets[-1] + 1])
