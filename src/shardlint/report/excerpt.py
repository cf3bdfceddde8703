"""The lines of a file that a finding speaks of, with a mark below the very words."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.findings import Span
from shardlint.findings.records import NamedTuple
from shardlint.report.plain import plain, width

LONGEST = 150  # characters of a line that are shown; one-line JSON manifests have tens of thousands
LEAD = 50  # of them before the marked words, where a line is cut


class Excerpt(NamedTuple):
    """One line of source and the mark below it."""

    number: int
    line: str
    indent: str
    mark: str


class Excerpts:
    """Cuts excerpts out of the files of a run, whose texts it gets by path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._lines: dict[str, list[str]] = {}

    def cut(self, span: Span, mark: str) -> Excerpt | None:
        """The first line of a span; None where its file is not at hand (the catalogue of models)."""
        lines = self._lines_of(span.path)
        if not 0 < span.line <= len(lines):
            return None
        line = lines[span.line - 1].removesuffix("\r")
        start = min(span.column - 1, len(line))
        end = max(span.end_column - 1 if span.end_line == span.line else len(line), start + 1)
        return _excerpt(span.line, line, start, end, mark)

    def _lines_of(self, path: str) -> list[str]:
        if path not in self._lines:
            text = self.texts.get(path)
            self._lines[path] = [] if text is None else text.split("\n")
        return self._lines[path]


def _excerpt(number: int, line: str, start: int, end: int, mark: str) -> Excerpt:
    first = max(0, start - LEAD) if len(line) > LONGEST else 0
    last = min(len(line), first + LONGEST)
    before = ("…" if first else "") + plain(line[first:start])
    marked = plain(line[start : min(end, last)])
    after = plain(line[min(end, last) : last]) + ("…" if last < len(line) else "")
    return Excerpt(number, before + marked + after, " " * width(before), mark * max(width(marked), 1))
