"""A file's text, stretches of it, and where a run gets other files from."""

from __future__ import annotations

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import accumulate
from types import MappingProxyType
from typing import Final, Protocol

from shardlint.findings import Span, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

MASK = "\U0010f5a5"
"""Stands for each character of a template, or of a hole in a text, while it is parsed: private use, so never text."""

ALL_GPUS = "it counts all GPUs of the pod or host when it runs"
"""Why `$(nvidia-smi -L | wc -l)` is not known, for those who know how many GPUs there are."""

NO_HOLES: Mapping[int, Unknown] = MappingProxyType({})

Stretches = Sequence[tuple[int, int]]
"""Stretches of a text, first and last offset, in order."""


class Source:
    """One file, already decoded. `path` is as the user gave it; offsets count characters of `text` from 0."""

    __slots__ = ("_line_starts", "_sought", "path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path: Final = path
        self.text: Final = text
        self._line_starts: list[int] = []
        self._sought: dict[str | Pattern, bool] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.path, self.text) == (other.path, other.text)

    def __hash__(self) -> int:
        return hash((self.path, self.text))

    def __repr__(self) -> str:
        return f"Source({self.path!r})"

    def holds(self, sought: str | Pattern) -> bool:
        """Whether a text or a pattern stands anywhere in it; looked for once, however many documents ask."""
        found = self._sought.get(sought)
        if found is None:
            found = sought in self.text if isinstance(sought, str) else sought.search(self.text) is not None
            self._sought[sought] = found
        return found

    def texts(self) -> Iterator[tuple[str, str]]:
        """The files that it holds, by path: itself."""
        yield self.path, self.text

    def span(self, start: int, end: int) -> Span:
        """The place of `text[start:end]`."""
        if end == 0:  # the file itself
            return Span(self.path, 1, 1, 1, 1)
        line_starts = self._starts()
        line = bisect_right(line_starts, start)
        end_line = bisect_right(line_starts, end)
        return Span(
            self.path,
            line,
            start - line_starts[line - 1] + 1,
            end_line,
            end - line_starts[end_line - 1] + 1,
        )

    def offset(self, line: int, column: int) -> int:
        """The place in `text` of a line and column; the end of the text where it has no such line."""
        line_starts = self._starts()
        return line_starts[line - 1] + column - 1 if line <= len(line_starts) else len(self.text)

    def _starts(self) -> list[int]:
        if not self._line_starts:  # filled on first use: most files are never asked
            lengths = map(len, StringIO(self.text, newline="\n"))
            self._line_starts = list(accumulate(lengths, initial=0))
            if self.text and not self.text.endswith("\n"):
                self._line_starts.pop()
        return self._line_starts


class Fragment(NamedTuple):
    """Text that was decoded from a stretch of a source (a YAML scalar), and where each character of it stands.

    `offsets[i]` is the place in `source.text` of `text[i]`; its last entry is the end, so it has one more entry
    than `text` has characters.
    """

    text: str
    source: Source
    offsets: Sequence[int]
    holes: Mapping[int, Unknown] = NO_HOLES
    """What a run of MASK stands for, by the index where it begins; a template where nothing is said."""

    def restored(self) -> str:
        """The text with what was masked in it as the file has it."""
        if MASK not in self.text:
            return self.text
        return "".join(
            self.source.text[self.offsets[at]] if character == MASK else character
            for at, character in enumerate(self.text)
        )

    def part(self, start: int, end: int) -> Fragment:
        """`text[start:end]` as a fragment of its own."""
        holes = {at - start: hole for at, hole in self.holes.items() if start <= at < end}
        return Fragment(self.text[start:end], self.source, self.offsets[start : end + 1], holes)

    def span(self, start: int, end: int) -> Span:
        """The place in the file of `text[start:end]`, quotes and folds between them included."""
        first = self.offsets[start]
        last = self._end_of(end - 1) if end > start else first
        return self.source.span(first, last)

    def _end_of(self, index: int) -> int:
        """The place after one character: an escape (`\\x36`) is longer than what it stands for."""
        place = self.offsets[index]
        is_escape = self.text[index] != "\\" and self.source.text.startswith("\\", place)
        return self.offsets[index + 1] if is_escape else place + 1

    @classmethod
    def whole(cls, source: Source) -> Fragment:
        """A file that is all one text (a shell script)."""
        return cls(source.text, source, range(len(source.text) + 1))


class Inset(Source):
    """A file that lies inside another one (a value of a ConfigMap): its places are those of the outer file."""

    __slots__ = ("_within",)

    def __init__(self, fragment: Fragment) -> None:
        super().__init__(fragment.source.path, fragment.text)
        self._within: Final = fragment

    def span(self, start: int, end: int) -> Span:
        return self._within.span(start, end)

    def offset(self, line: int, column: int) -> int:
        return bisect_left(self._within.offsets, self._within.source.offset(line, column), hi=len(self.text))


def beside(path: str, name: str) -> str:
    """The path of a file that another one names, relative to the folder of that one."""
    joined = posixpath.join(posixpath.dirname(path.replace("\\", "/")), posixpath.normpath(name))
    return posixpath.normpath(joined) if name.startswith("..") else joined


class ModelFiles(NamedTuple):
    """What is known of one model from files: its config.json and the side files beside it, by name."""

    model_id: str
    config: Source
    side_files: tuple[tuple[str, Source], ...] = ()
    origin: str = ""
    """Where they were found, in words: "--models models.json", "the Hugging Face cache"."""


class Library(Protocol):
    """What a check may ask of the world outside its sources. `front` reads the disk; tests give a dict."""

    def sibling(self, path: str) -> Source | Unknown:
        """A file that a manifest names, by its path; only inside the scanned roots."""
        ...

    def names_in(self, folder: str) -> tuple[str, ...]:
        """The names of the files in a folder, sorted; none where it is not there or lies outside of the roots."""
        return ()

    def model(self, model_id: str) -> ModelFiles | Unknown:
        """The files of a model by the id or path that the engine is given; never over the network."""
        ...
