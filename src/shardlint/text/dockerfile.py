"""Dockerfiles -> instructions, lines put together, each character at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.findings.records import NamedTuple
from shardlint.text.source import Fragment, Source

_ESCAPE = re.compile(r"(?:#[^\n]*=[^\n]*\n)*?#[ \t]*escape[ \t]*=[ \t]*([\\`])[ \t]*\r?(?:\n|\Z)", re.IGNORECASE)
_KEYWORD = re.compile(r"\s*([A-Za-z]+)(?:\s+|\Z)")
_HEREDOC = re.compile(r"(?<!<)<<(-?)([\"']?)([A-Za-z_]\w*)\2(?=[\s>|;&)]|\Z)")
_WITH_HEREDOCS = ("RUN", "COPY", "ADD")


class Instruction(NamedTuple):
    """`arguments`: the rest of its line; `heredocs`: the bodies of its here-documents, in their order."""

    keyword: str
    """In capitals."""
    arguments: Fragment
    heredocs: tuple[Fragment, ...] = ()


def instructions(source: Source) -> Iterator[Instruction]:
    """The instructions of a Dockerfile; a line that is none is passed over. Never raises for what the file says."""
    reader = _Lines(source)
    while (line := reader.logical()) is not None:
        keyword = _KEYWORD.match(line.text)
        if keyword is None:
            continue
        name = keyword[1].upper()
        arguments = line.part(keyword.end(), len(line.text))
        heredocs = reader.heredocs(arguments.text) if name in _WITH_HEREDOCS else ()
        yield Instruction(name, arguments, heredocs)


class _Lines:
    """Where in the file the reading stands."""

    def __init__(self, source: Source) -> None:
        self.source = source
        escape = _ESCAPE.match(source.text)
        self.escape = escape[1] if escape else "\\"
        self.at = 0

    def physical(self) -> tuple[int, int] | None:
        """The next line without its end."""
        text = self.source.text
        if self.at >= len(text):
            return None
        start = self.at
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        self.at = end + 1
        return start, end

    def logical(self) -> Fragment | None:
        """The next instruction; comments and empty lines before and inside it are left out."""
        offsets: list[int] = []
        begun = False
        while (line := self.physical()) is not None:
            written = self.source.text[line[0] : line[1]].rstrip()
            if not written or written.lstrip().startswith("#"):
                continue
            begun = True
            goes_on = written.endswith(self.escape) and not written.endswith(self.escape * 2)
            offsets += range(line[0], line[0] + len(written) - goes_on)
            if not goes_on:
                break
        if not begun:
            return None
        text = self.source.text
        return Fragment("".join(text[at] for at in offsets), self.source, [*offsets, offsets[-1] + 1 if offsets else 0])

    def heredocs(self, text: str) -> tuple[Fragment, ...]:
        """The bodies that an instruction announces."""
        return tuple(self._body(match[3], strips_tabs=bool(match[1])) for match in _HEREDOC.finditer(text))

    def _body(self, name: str, *, strips_tabs: bool) -> Fragment:
        offsets: list[int] = []
        text = self.source.text
        while (line := self.physical()) is not None:
            start, end = line
            if strips_tabs:
                start = end - len(text[start:end].lstrip("\t"))
            if text[start:end].rstrip("\r") == name:
                break
            offsets += range(start, min(end + 1, len(text)))
        end = offsets[-1] + 1 if offsets else min(self.at, len(text))
        return Fragment("".join(text[at] for at in offsets), self.source, [*offsets, end])
