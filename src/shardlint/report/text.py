"""A report for a person: every finding with its source, then what was not checked, then the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from shardlint.findings import SEVERITIES, FileNote, Finding, NotChecked, Related, Report
from shardlint.findings.words import counted
from shardlint.report.json import summary
from shardlint.report.paint import paint
from shardlint.report.plain import plain

if TYPE_CHECKING:
    from shardlint.report.excerpt import Excerpt, Excerpts

CATALOGUE = "catalogue:"
MOST_NAMES = 8  # in one line of what was not read or not checked; the JSON has them all

SAME_ADVICE = "as for the one before"

EFFECTS = {
    "refuses-at-start": "the engine refuses to start",
    "fails-while-loading": "the engine fails while it loads the model",
    "runs-out-of-memory": "the engine runs out of memory",
    "hangs": "the engine hangs",
    "slow": "the engine is slower than it need be",
    "wastes": "GPUs or their memory are paid for and not used",
    "misbehaves": "the engine does something else than what is meant",
}


def check_text(report: Report, texts: Mapping[str, str], colour: bool) -> Iterator[str]:
    """The lines of `shardlint check`; `texts`: the files that were read, by path, for excerpts."""
    if report.findings:
        from shardlint.report.excerpt import Excerpts  # clean runs, the most common ones, do without

        excerpts = Excerpts(texts)
        before = None
        for finding in report.findings:
            yield from _finding(finding, excerpts, colour, repeats=_same_advice(before, finding))
            yield ""
            before = finding
    yield from _not_read(report.files, colour)
    yield from _not_checked(report.not_checked, colour)
    yield _summary(report, colour)


def _same_advice(before: Finding | None, finding: Finding) -> bool:
    """Whether the one just told gave the same advice about the same words: several rules may refuse one size."""
    return before is not None and len(finding.help) > 1 and (before.span, before.help) == (finding.span, finding.help)


def _finding(finding: Finding, excerpts: Excerpts, colour: bool, *, repeats: bool) -> Iterator[str]:
    place = paint(f"{plain(finding.path)}:{finding.line}:{finding.column}", "strong", colour)
    label = paint(f"{finding.severity}[{finding.code} {finding.rule}]", finding.severity, colour)
    estimate = " (an estimate)" if finding.certainty == "estimate" else ""
    yield f"{place}: {label}: {plain(finding.message)}{estimate}"

    shown = finding._replace(help=(SAME_ADVICE,)) if repeats else finding
    frame = _Frame(shown, excerpts, colour)
    yield from frame.excerpts()
    yield from frame.remarks()


class _Frame:
    """What stands below a finding's first line: excerpts in the order of their lines, and remarks."""

    def __init__(self, finding: Finding, excerpts: Excerpts, colour: bool) -> None:
        self._finding = finding
        self._colour = colour
        here = [item.message for item in finding.related if item.span == finding.span]
        own = Related(finding.span, "; ".join(here))
        others = (item for item in finding.related if item.span != finding.span)
        cuts = [(item, excerpts.cut(item.span, "^" if item is own else "-")) for item in (own, *others)]
        self._shown = sorted(((item, cut) for item, cut in cuts if cut), key=self._order)
        self._unseen = [item for item, cut in cuts if cut is None and item.message]
        self._margin = max([len(str(cut.number)) for _, cut in self._shown], default=1)

    def _order(self, shown: tuple[Related, Excerpt]) -> tuple[bool, str, int]:
        span = shown[0].span
        return span.path != self._finding.path, span.path, span.line

    def excerpts(self) -> Iterator[str]:
        path = self._finding.path
        for item, cut in self._shown:
            if item.span.path != path:
                path = item.span.path
                yield f"{' ' * self._margin} {paint('-->', 'frame', self._colour)} {_place(item)}"
            yield f"{self._edge(str(cut.number))} {cut.line}"
            yield f"{self._edge()} {cut.indent}{self._mark(item, cut)}"

    def _mark(self, item: Related, cut: Excerpt) -> str:
        style = self._finding.severity if item.span == self._finding.span else "frame"
        return paint(f"{cut.mark} {plain(item.message)}".rstrip(), style, self._colour)

    def remarks(self) -> Iterator[str]:
        for item in self._unseen:
            yield self._remark("from", f"{_place(item)}: {plain(item.message)}")
        if self._finding.sum:
            yield self._remark("sum", plain(self._finding.sum))
        for line in self._finding.help:
            yield self._remark("help", plain(line))
        if self._finding.effect:
            yield self._remark("effect", EFFECTS[self._finding.effect])

    def _remark(self, label: str, text: str) -> str:
        sign = paint("=", "frame", self._colour)
        return f"{' ' * self._margin} {sign} {paint(label, 'strong', self._colour)}: {text}"

    def _edge(self, number: str = "") -> str:
        return paint(f"{number:>{self._margin}} |", "frame", self._colour)


def _place(item: Related) -> str:
    """Where a part of the fault stands; the catalogue's rows have no lines that a reader could open."""
    span = item.span
    return plain(span.path) + ("" if span.path.startswith(CATALOGUE) else f":{span.line}:{span.column}")


def _not_read(notes: Iterable[FileNote], colour: bool) -> Iterator[str]:
    """One entry for each reason: a large folder has many files that only speak of language models."""
    groups: dict[str, list[str]] = {}
    for note in notes:
        if note.reason:
            groups.setdefault(note.reason, []).append(note.path)
    if groups:
        yield paint("nothing read:", "strong", colour)
    for reason, paths in groups.items():
        yield f"  {plain(reason)}: {plain(_list(paths))}"
    if groups:
        yield ""


def _not_checked(items: Iterable[NotChecked], colour: bool) -> Iterator[str]:
    """One entry for each reason, however many rules and deployments it stops."""
    groups: dict[tuple[str, str], list[NotChecked]] = {}
    for item in items:
        groups.setdefault((item.reason, item.settle_by), []).append(item)
    if groups:
        yield paint("not checked:", "strong", colour)
    for (reason, settle_by), members in groups.items():
        yield f"  {plain(reason)}" + (f"; to settle it: {plain(settle_by)}" if settle_by else "")
        rules = _list("all rules" if item.rule == "*" else item.rule for item in members)
        yield f"    {rules} on {plain(_list(item.deployment for item in members))}"
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
    found = ", ".join(counted(counts[f"{severity}s"], severity) for severity in SEVERITIES if counts[f"{severity}s"])
    said = paint(found or "nothing found", worst or "good", colour)
    ignored = f"{counts['ignored']} ignored" if counts["ignored"] else ""
    missed = f"{counted(counts['not_checked'], 'check')} not made" if counts["not_checked"] else ""
    rest = ", ".join(part for part in (ignored, missed) if part)
    files = counted(counts["files"], "file")
    if not (worst or counts["deployments"] or rest):
        return f"no deployment to check in {files}"
    where = f"{counted(counts['deployments'], 'deployment')} of {files}"
    return f"{said} in {where}" + (f" ({rest})" if rest else "")
