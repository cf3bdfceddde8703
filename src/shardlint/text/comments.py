"""`# shardlint: ignore[NAME, ...] reason`: comments to the linter, found by a scan of lines."""

from __future__ import annotations

import re

from shardlint.findings import Ignore, Problem, Span
from shardlint.findings.patterns import Pattern
from shardlint.text.source import Source

_COMMENT = Pattern(r"(?:^|(?<=[\s;]))#[ \t]*shardlint:[ \t]*(?P<said>[^\r\n]*)", re.MULTILINE)
_IGNORE = Pattern(r"ignore\[(?P<names>[ \t]*[\w-]+[ \t]*(?:,[ \t]*[\w-]+[ \t]*)*,?[ \t]*)\][ \t:-]*(?P<reason>.*)")


def read(source: Source) -> tuple[tuple[Ignore, ...], tuple[Problem, ...]]:
    """The comments to the linter, and those that cannot be understood."""
    found: list[Ignore] = []
    problems: list[Problem] = []
    if "shardlint:" not in source.text:
        return (), ()
    for comment in _COMMENT.finditer(source.text):
        span = source.span(comment.start(), comment.start() + len(comment.group().rstrip()))
        ignore = _IGNORE.fullmatch(comment["said"].rstrip())
        if ignore is None:
            problems.append(_malformed(span))
            continue
        names = tuple(name.strip() for name in ignore["names"].split(",") if name.strip())
        found.append(Ignore(names, ignore["reason"].strip(), span, _covered(source, comment.start(), span.line)))
    return tuple(found), tuple(problems)


def ignores(source: Source) -> tuple[Ignore, ...]:
    """The comments that are well formed."""
    return read(source)[0]


def problems(source: Source) -> tuple[Problem, ...]:
    """The comments that begin with `shardlint:` and say nothing that it knows."""
    return read(source)[1]


def _malformed(span: Span) -> Problem:
    return Problem(
        span,
        "This comment is not understood: what it ignores has to stand in brackets.",
        help=("# shardlint: ignore[NAME] reason",),
        severity="warning",
    )


def _covered(source: Source, start: int, line: int) -> int:
    """Several comments above one line all cover it."""
    text = source.text
    if text[text.rfind("\n", 0, start) + 1 : start].strip():
        return line
    lines = text[start:].split("\n", 64)
    for distance, following in enumerate(lines[1:64], start=1):
        if following.strip() and not following.lstrip().startswith("#"):
            return line + distance
    return line
