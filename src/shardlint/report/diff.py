"""What findings advise to change, as one patch for each file, that nothing applies by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff

from shardlint.findings import Change, Finding, Report, Span
from shardlint.findings.records import NamedTuple
from shardlint.report.plain import plain

CONTEXT_LINES = 2
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_NEWLINE = "\\ No newline at end of file"


class _Edit(NamedTuple):
    """New text for a stretch of a file, in characters."""

    start: int
    end: int
    text: str

    def meets(self, other: _Edit) -> bool:
        return self.start < other.end and other.start < self.end


def diff_text(report: Report, texts: Mapping[str, str]) -> Iterator[str]:
    """What is mended of each finding, as remarks, and then the patches, which a patch program takes together."""
    edits: dict[str, list[_Edit]] = {}
    for finding in report.findings:
        yield f"# {plain(finding.path)}:{finding.line}:{finding.column}: {finding.code} {finding.rule}"
        yield f"# {_mended(finding, texts, edits)}"
    for path, of_file in edits.items():
        yield from _patch(path, texts[path], of_file)


def _mended(finding: Finding, texts: Mapping[str, str], edits: dict[str, list[_Edit]]) -> str:
    """What becomes of a finding; the first advice that is an edit of text as it was read joins the others."""
    for change in finding.help:
        if not isinstance(change, Change) or (edit := _edit(change, texts)) is None:
            continue
        of_file = edits.setdefault(change.span.path, [])
        if edit in of_file:
            return f"mended with another finding: {plain(change)}"
        if any(map(edit.meets, of_file)):
            return f"no patch beside that of another finding: {plain(change)}"
        of_file.append(edit)
        return f"mended: {plain(change)}"
    return f"no patch: {plain(finding.help[0]) if finding.help else 'no advice'}"


def _edit(change: Change, texts: Mapping[str, str]) -> _Edit | None:
    """None where the text at its place is not what was read there, or its line is nothing for a terminal."""
    text = texts.get(change.span.path)
    if text is None:
        return None
    lines = _lines(text)
    start, end = _offset(lines, change.span), _end(lines, change.span)
    if text[start:end].count(change.old) != 1:
        return None
    start += text[start:end].index(change.old)
    edit = _Edit(start, start + len(change.old), change.text)
    return edit if all(map(_is_fit_for_a_terminal, _patch(change.span.path, text, [edit]))) else None


def _patch(path: str, text: str, edits: list[_Edit]) -> Iterator[str]:
    changed = text
    for edit in sorted(edits, reverse=True):
        changed = changed[: edit.start] + edit.text + changed[edit.end :]
    name = plain(path)
    for line in unified_diff(_lines(text), _lines(changed), f"a/{name}", f"b/{name}", n=CONTEXT_LINES):
        yield from _whole(line)


def _lines(text: str) -> list[str]:
    """Lines as places count them, with their ends: form feeds and the like end none."""
    return _LINE.findall(text)


def _is_fit_for_a_terminal(line: str) -> bool:
    """Whether a line can be shown as it is, which a patch program needs."""
    inner = line.removesuffix("\n").removesuffix("\r").replace("\t", " ")
    return inner.isprintable()


def _whole(line: str) -> Iterator[str]:
    """A line of a patch without its end; one that had none says so, as patch programs want it."""
    yield line.removesuffix("\n")
    if not line.endswith("\n"):
        yield NO_NEWLINE


def _offset(lines: list[str], span: Span) -> int:
    return sum(map(len, lines[: span.line - 1])) + span.column - 1


def _end(lines: list[str], span: Span) -> int:
    return sum(map(len, lines[: span.end_line - 1])) + span.end_column - 1
