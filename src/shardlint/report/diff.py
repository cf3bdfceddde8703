"""What findings advise to change, as patches: one for each, that nothing applies by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff

from shardlint.findings import Change, Finding, Report, Span
from shardlint.report.plain import plain

CONTEXT_LINES = 2
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_NEWLINE = "\\ No newline at end of file"


def diff_text(report: Report, texts: Mapping[str, str]) -> Iterator[str]:
    """The lines of all patches, each under the finding that it mends; a finding without one says so."""
    for finding in report.findings:
        changes = [advice for advice in finding.help if isinstance(advice, Change)]
        yield f"# {plain(finding.path)}:{finding.line}:{finding.column}: {finding.code} {finding.rule}"
        patch = next((patch for change in changes if (patch := _patch(change, texts))), None)
        yield from patch or _without(finding)


def _without(finding: Finding) -> Iterator[str]:
    advice = plain(finding.help[0]) if finding.help else "no advice"
    yield f"# no patch: {advice}"


def _patch(change: Change, texts: Mapping[str, str]) -> list[str] | None:
    """The patch of one change; None where the text at its place is not what was read there."""
    text = texts.get(change.span.path)
    if text is None:
        return None
    lines = _lines(text)
    start, end = _offset(lines, change.span), _end(lines, change.span)
    written = text[start:end]
    if written.count(change.old) != 1:
        return None
    changed = text[:start] + written.replace(change.old, change.text) + text[end:]
    name = plain(change.span.path)
    patch = list(unified_diff(lines, _lines(changed), f"a/{name}", f"b/{name}", n=CONTEXT_LINES))
    if not all(_is_fit_for_a_terminal(line) for line in patch):
        return None
    return [part for line in patch for part in _whole(line)]


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
