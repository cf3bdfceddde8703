"""What `helm template` prints: the texts of many files, each behind a comment that names the template it came from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from shardlint.findings import Span
from shardlint.findings.records import NamedTuple
from shardlint.text.source import Source

MARK = "# Source: "
_CHUNK = re.compile(r"^---[ \t]*\r?\n# Source: (\S[^\r\n]*)\r?\n", re.MULTILINE)


class _Chunk(NamedTuple):
    path: str
    first_line: int
    """In the whole text."""
    own_line: int
    """The same line in the file that `--output-dir` would write: the chunks of one template follow each other."""


class Rendered(Source):
    """One text, so that objects of several files know each other; places are those of the files."""

    __slots__ = ("_chunks", "_lines", "_parts")

    def __init__(self, path: str, text: str, renamed: Callable[[str], str] = str) -> None:
        """`renamed` makes the path of a template out of the name in its comment."""
        super().__init__(path, text)
        self._parts: Final[dict[str, list[str]]] = {}
        self._chunks: Final = list(self._split(renamed))
        self._lines: Final = [chunk.first_line for chunk in self._chunks]

    def _split(self, renamed: Callable[[str], str]) -> Iterator[_Chunk]:
        marks = list(_CHUNK.finditer(self.text))
        ends = [*(mark.start() for mark in marks), len(self.text)][1:]
        lines: Counter[str] = Counter()
        for mark, end in zip(marks, ends, strict=True):
            name = renamed(mark[1].strip())
            part = self.text[mark.start() : end]
            self._parts.setdefault(name, []).append(part)
            yield _Chunk(name, super().span(mark.start(), mark.start()).line, lines[name] + 1)
            lines[name] += part.count("\n")

    def span(self, start: int, end: int) -> Span:
        """The place in the file that the text comes from; before the first of them in the whole text."""
        whole = super().span(start, end)
        chunk = bisect_right(self._lines, whole.line) - 1
        if chunk < 0:
            return whole
        path, first_line, own_line = self._chunks[chunk]
        lines = own_line - first_line
        return whole._replace(path=path, line=whole.line + lines, end_line=whole.end_line + lines)

    def offset(self, line: int, column: int) -> int:
        """Lines are those of the files, so that none of them is found here: the end of the text."""
        return len(self.text)

    def texts(self) -> Iterator[tuple[str, str]]:
        """The whole, and each file as it would be written by itself."""
        yield from super().texts()
        for name, parts in self._parts.items():
            yield name, "".join(parts)
