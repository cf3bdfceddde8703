"""`check` and `read`: every file is read, every deployment judged, every finding weighed against its comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from shardlint.check.facts import DeploymentFacts, FileFacts
from shardlint.check.ignoring import is_settled, split
from shardlint.check.judging import judge, said_of
from shardlint.check.reading import FileReading, read_file, without_parts
from shardlint.check.settings import Settings
from shardlint.check.sharing import Shared
from shardlint.check.suggesting import with_suggestions
from shardlint.check.trying import Trial
from shardlint.findings import Finding, Ignore, NotChecked, Report, Rule
from shardlint.text import Library, Source
from shardlint.text.comments import ignores


def read(sources: Iterable[Source], library: Library, settings: Settings) -> Report:
    """What the files say, unjudged: `Report.deployments` and `Report.files`."""
    readings = without_parts([read_file(source, library, settings) for source in sources])
    return _report(readings, [], [], [])


def check(sources: Iterable[Source], library: Library, settings: Settings) -> Report:
    """Every deployment of every file judged by every rule that the settings want.

    Raises RuleFailed for a rule that raises and PluginFailed for a plugin that does; a file that cannot be read is a
    finding.
    """
    readings = without_parts([read_file(source, library, settings) for source in sources])
    return judge_all(readings, library, settings)


def judge_all(readings: Sequence[FileReading], library: Library, settings: Settings) -> Report:
    """The second half of `check`: files that are read already, judged."""
    reports = list(judge_each(readings, library, settings))
    return Report(*(tuple(chain.from_iterable(parts)) for parts in zip(*reports, strict=True))) if reports else Report()


def judge_each(readings: Sequence[FileReading], library: Library, settings: Settings) -> Iterator[Report]:
    """The same, a report for each file: on its deployments, wherever what they are made of stands."""
    wanted = [rule for rule in settings.registry.rules if settings.wants(rule)]
    unheard = [rule for rule in settings.registry.rules if rule not in wanted]
    of_files = [rule for rule in wanted if rule.subject == "file"]
    shared = Shared()
    for reading in readings:
        start, file = reading.source.span(0, 0), FileFacts(reading)
        said = [item for rule in of_files for item in judge(rule, file, start)]
        said += _said_of_deployments(reading, wanted, library, settings, shared)
        findings = sorted(dict.fromkeys(item for item in said if isinstance(item, Finding)), key=_place)
        missed = [item for item in said if isinstance(item, NotChecked)]
        shown, ignored = _weighed(reading, findings, wanted, unheard, missed, library)
        yield _report([reading], shown, ignored, missed)


def _said_of_deployments(
    reading: FileReading, wanted: Sequence[Rule], library: Library, settings: Settings, shared: Shared
) -> Iterator[Finding | NotChecked]:
    for deployment in reading.deployments:
        facts = DeploymentFacts(deployment, library, settings, reading.deployments, shared)
        trial = Trial(deployment, library, settings, shared)
        yield from with_suggestions(facts, trial, list(said_of(deployment, facts, wanted)))


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.line, finding.column, finding.code


def _weighed(
    reading: FileReading,
    findings: Sequence[Finding],
    wanted: Sequence[Rule],
    unheard: Sequence[Rule],
    missed: Sequence[NotChecked],
    library: Library,
) -> tuple[list[Finding], list[Finding]]:
    """The findings less those that a comment covers; comments that cover nothing become findings of their own."""
    own = () if reading.is_part else ignores(reading.source)
    comments = (*own, *_ignores_beside(reading, findings, library))
    if not comments:
        return list(findings), []
    shown, covered, unused = split(findings, comments)
    settled = [comment for comment in unused if comment in own and is_settled(comment, unheard, missed)]
    facts = FileFacts(reading, settled)
    start = reading.source.span(0, 0)
    for rule in wanted:
        if rule.subject == "comments":
            shown += [item for item in judge(rule, facts, start) if isinstance(item, Finding)]
    return sorted(shown, key=_place), covered


def _ignores_beside(reading: FileReading, findings: Sequence[Finding], library: Library) -> Iterator[Ignore]:
    """The comments of other files that findings stand in: files of flags, of variables."""
    for path in sorted({finding.path for finding in findings} - {path for path, _ in reading.source.texts()}):
        if isinstance(source := library.sibling(path), Source):
            yield from ignores(source)


def _report(
    readings: Sequence[FileReading], shown: list[Finding], covered: list[Finding], missed: list[NotChecked]
) -> Report:
    return Report(
        findings=tuple(shown),
        ignored=tuple(covered),
        not_checked=tuple(missed),
        files=tuple(reading.note for reading in readings),
        deployments=tuple(deployment for reading in readings for deployment in reading.deployments),
    )
