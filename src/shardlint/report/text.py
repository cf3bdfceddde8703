"""A report for a person: every finding with its source, then what was not checked, then the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shardlint.findings import SEVERITIES, Finding, NotChecked, Related, Report
from shardlint.report.excerpt import Excerpt, Excerpts
from shardlint.report.json import summary
from shardlint.report.paint import paint
from shardlint.report.plain import plain

CATALOGUE = "catalogue:"
MOST_NAMES = 8  # in one line of what was not checked; the JSON has them all

EFFECTS = {
    "refuses-at-start": "the engine refuses to start",
    "fails-while-loading": "the engine fails while it loads the model",
    "runs-out-of-memory": "the engine runs out of GPU memory",
    "hangs": "the engine hangs",
    "slow": "the engine is slower than it need be",
    "wastes": "GPUs or their memory are paid for and not used",
    "misbehaves": "the engine does something else than what is meant",
}


def check_text(report: Report, texts: Mapping[str, str], colour: bool) -> Iterator[str]:
    """The lines of `shardlint check`; `texts`: the files that were read, by path, for excerpts."""
    excerpts = Excerpts(texts)
    for finding in report.findings:
        yield from _finding(finding, excerpts, colour)
        yield ""
    unread = [note for note in report.files if note.form is None and note.reason]
    for note in unread:
        yield f"not read: {plain(note.path)}: {plain(note.reason or '')}"
    if unread:
        yield ""
    yield from _not_checked(report.not_checked, colour)
    yield _summary(report, colour)


def _finding(finding: Finding, excerpts: Excerpts, colour: bool) -> Iterator[str]:
    place = paint(f"{plain(finding.path)}:{finding.line}:{finding.column}", "strong", colour)
    label = paint(f"{finding.severity}[{finding.code} {finding.rule}]", finding.severity, colour)
    estimate = " (an estimate)" if finding.certainty == "estimate" else ""
    yield f"{place}: {label}: {plain(finding.message)}{estimate}"

    main = excerpts.cut(finding.span, "^")
    others = [(item, excerpts.cut(item.span, "-")) for item in finding.related]
    margin = max([len(str(cut.number)) for cut in (main, *(cut for _, cut in others)) if cut] or [1])
    frame = _Frame(margin, colour)
    if main:
        yield from frame.excerpt(main, "", finding.severity)
    for related, cut in others:
        yield from frame.related(related, cut, finding.path)
    yield from frame.remarks(finding)


class _Frame:
    """The lines to the right of the line numbers."""

    def __init__(self, margin: int, colour: bool) -> None:
        self._margin = margin
        self._colour = colour

    def excerpt(self, cut: Excerpt, message: str, style: str) -> Iterator[str]:
        yield f"{self._edge(str(cut.number))} {cut.line}"
        blank = cut.mark[: len(cut.mark) - len(cut.mark.lstrip())]
        said = f"{cut.mark.lstrip()} {message}".rstrip()
        yield f"{self._edge()} {blank}{paint(said, style, self._colour)}"

    def related(self, item: Related, cut: Excerpt | None, path: str) -> Iterator[str]:
        message = plain(item.message)
        place = plain(item.span.path)
        if not item.span.path.startswith(CATALOGUE):  # its rows have no lines that a reader could open
            place += f":{item.span.line}:{item.span.column}"
        if cut is None:
            yield self._remark("from", f"{place}: {message}")
            return
        if item.span.path != path:
            yield f"{' ' * self._margin} {paint('-->', 'frame', self._colour)} {place}"
        yield from self.excerpt(cut, message, "frame")

    def remarks(self, finding: Finding) -> Iterator[str]:
        if finding.sum:
            yield self._remark("sum", plain(finding.sum))
        for line in finding.help:
            yield self._remark("help", plain(line))
        if finding.effect:
            yield self._remark("effect", EFFECTS[finding.effect])

    def _remark(self, label: str, text: str) -> str:
        sign = paint("=", "frame", self._colour)
        return f"{' ' * self._margin} {sign} {paint(label, 'strong', self._colour)}: {text}"

    def _edge(self, number: str = "") -> str:
        return paint(f"{number:>{self._margin}} |", "frame", self._colour)


def _not_checked(items: Iterable[NotChecked], colour: bool) -> Iterator[str]:
    """One entry for each reason, however many rules and deployments it stops."""
    groups: dict[tuple[str, str], list[NotChecked]] = {}
    for item in items:
        groups.setdefault((item.reason, item.settle_by), []).append(item)
    if groups:
        yield paint("not checked:", "strong", colour)
    for (reason, settle_by), members in groups.items():
        yield f"  {plain(reason)}" + (f"; to settle it: {plain(settle_by)}" if settle_by else "")
        yield f"    {_list(item.rule for item in members)} on {plain(_list(item.deployment for item in members))}"
    if groups:
        yield ""


def _list(words: Iterable[str]) -> str:
    """Each word once; of many only the first, with the number of the others."""
    unique = list(dict.fromkeys(words))
    more = len(unique) - MOST_NAMES
    return ", ".join(unique[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _summary(report: Report, colour: bool) -> str:
    counts = summary(report)
    worst = next((severity for severity in SEVERITIES if counts[f"{severity}s"]), None)
    found = ", ".join(_count(counts[f"{severity}s"], severity) for severity in SEVERITIES if counts[f"{severity}s"])
    said = paint(found or "nothing found", worst or "good", colour)
    rest = ", ".join(f"{counts[key]} {key.replace('_', ' ')}" for key in ("ignored", "not_checked") if counts[key])
    where = f"{_count(counts['deployments'], 'deployment')} of {_count(counts['files'], 'file')}"
    return f"{said} in {where}" + (f" ({rest})" if rest else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
