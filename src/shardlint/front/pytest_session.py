"""The door of pytest, opened: every deployment below the test paths is an item, and all are judged in one pass."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest

from shardlint import engines
from shardlint.check import RuleFailed, Settings
from shardlint.check.reading import FileReading, read_file, without_parts
from shardlint.check.run import judge_each
from shardlint.deployment import Deployment
from shardlint.findings import Report, Severity
from shardlint.findings.records import NamedTuple
from shardlint.front.commands import file_findings, settings_of, threshold, with_project_settings
from shardlint.front.failures import CannotRun
from shardlint.front.files import Found, find
from shardlint.front.library import DiskLibrary
from shardlint.front.options import Options
from shardlint.front.settings import project_folder
from shardlint.plugins import PluginFailed
from shardlint.report.plain import plain
from shardlint.report.text import check_text
from shardlint.rules import BrokenRule
from shardlint.testing import LayoutChecker
from shardlint.text.comments import ignores

MARKER = "shardlint"
FILE = "file"  # the item for what is wrong with a file and not with a deployment
CODE, FAMILY, NOT_CHECKED = "shardlint_code", "shardlint_family", "shardlint_not_checked"
"""Names of the properties in the JUnit report; the first two once for each finding."""

T = TypeVar("T")
Key = tuple[str, str]
"""The path of a file and the name of one of its deployments, which is empty for the file itself."""


def start(config: pytest.Config) -> None:
    """Begin to collect manifests. Raises pytest.UsageError for settings that make no sense."""
    config.addinivalue_line("markers", f"{MARKER}: a deployment in a manifest, checked by shardlint")
    config.pluginmanager.register(Session(World.of(config)), "shardlint-session")


def checker(config: pytest.Config) -> LayoutChecker:
    """What the fixture gives. Raises pytest.UsageError for settings that make no sense."""
    world = World.of(config)
    return LayoutChecker(world.library, world.settings, world.fail_on, world.strict)


class World(NamedTuple):
    """What pytest's options and the project's settings say together."""

    library: DiskLibrary
    settings: Settings
    fail_on: Severity
    strict: bool

    @classmethod
    def of(cls, config: pytest.Config) -> World:
        try:
            return cls._of(config)
        except (CannotRun, BrokenRule, PluginFailed) as failure:
            raise pytest.UsageError(f"shardlint: {failure}") from failure

    @classmethod
    def _of(cls, config: pytest.Config) -> World:
        named = (argument.partition("::")[0] for argument in config.args)
        paths = (str(config.rootpath), *(os.path.abspath(path) for path in named if os.path.exists(path)))
        models = config.getoption("shardlint_models")
        options = with_project_settings(
            Options(
                "check",
                paths,
                models=None if models is None else os.path.abspath(models),
                hardware=config.getoption("shardlint_hardware"),
                fail_on=config.getoption("shardlint_fail_on"),
                strict=config.getoption("shardlint_strict"),
            )
        )
        library = DiskLibrary(paths, models=options.models, project=project_folder(paths), environ=os.environ)
        return cls(library, settings_of(options), threshold(options), options.strict)


class Session:
    """The hooks of one run, and what it found."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.patterns = tuple(pattern for form in world.settings.registry.forms for pattern in form.FILES)
        self._items: list[ManifestItem] = []

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> ManifestFile | None:
        if any(file_path.match(pattern) for pattern in self.patterns):
            return ManifestFile.from_parent(parent, path=file_path, run=self)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """What stands in one file and is made or completed by another is one deployment, and so one item."""
        read = {item.file: item.file.reading for item in items if isinstance(item, ManifestItem)}
        kept = without_parts([reading for reading in read.values() if reading])
        for file, reading in zip((file for file, reading in read.items() if reading), kept, strict=True):
            file.reading = reading
        parts = [item for item in items if isinstance(item, ManifestItem) and item.is_part]
        if parts:
            config.hook.pytest_deselected(items=parts)
            items[:] = [item for item in items if item not in parts]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = [item for item in session.items if isinstance(item, ManifestItem)]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What was not checked is no pass: say so, wherever the items ran."""
        reports = (report for reports in terminalreporter.stats.values() for report in reports)
        counts = [count for report in reports for count in _not_checked(report)]
        if counts:
            rules, items = (f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in _nouns(counts))
            terminalreporter.write_line(f"shardlint: {rules} could not be checked on {items}; -rP says what is missing")

    def report_of(self, item: ManifestItem) -> Report:
        """What the one pass over all files with selected items found about one item. Raises RuleFailed."""
        if isinstance(self._reports, Exception):
            raise self._reports
        return self._reports.get((item.file.shown, item.subject), Report())

    @cached_property
    def _reports(self) -> Mapping[Key, Report] | RuleFailed | BrokenRule | PluginFailed:
        try:
            return self._judge()
        except (RuleFailed, BrokenRule, PluginFailed) as failure:  # for every item: none of them was judged
            return failure

    def _judge(self) -> Mapping[Key, Report]:
        files = [file for file in dict.fromkeys(item.file for item in self._items) if file.reading]
        readings = [file.reading for file in files if file.reading]
        judged = zip(files, judge_each(readings, self.world.library, self.world.settings), strict=True)
        unread = {(item.file.shown, ""): self._unread(item.file) for item in self._items if not item.file.reading}
        read = {(file.shown, name): part for file, whole in judged for name, part in _by_deployment(whole).items()}
        return {**unread, **read}

    def _unread(self, file: ManifestFile) -> Report:
        """What is wrong with a file that has no text."""
        return Report(tuple(file_findings(file.found.problems, self.world.settings)), files=tuple(file.found.notes))

    def text(self, item: ManifestItem, report: Report) -> str:
        """The report on one item, as `shardlint check` prints it."""
        sources = {source.path: source.text for source in item.file.found.sources}
        texts = {**dict(self.world.library.texts()), **sources}
        return "\n".join(check_text(report, texts, colour=False))


def _nouns(counts: list[int]) -> tuple[tuple[int, str], tuple[int, str]]:
    return (sum(counts), "rule"), (len(counts), "deployment")


def _not_checked(report: Any) -> Iterator[int]:
    """Of a test's report in the phase that ran it; the list holds reports of other kinds too."""
    if getattr(report, "when", None) == "call":
        yield from (int(value) for name, value in report.user_properties if name == NOT_CHECKED)


def _by_deployment(whole: Report) -> Mapping[str, Report]:
    """The report on a file in parts; what concerns the file itself has no deployment."""
    findings = _grouped(whole.findings, lambda finding: finding.deployment)
    ignored = _grouped(whole.ignored, lambda finding: finding.deployment)
    missed = _grouped(whole.not_checked, lambda missed: missed.deployment)
    deployments = _grouped(whole.deployments, lambda deployment: deployment.name)
    return {
        name: Report(
            findings.get(name, ()), ignored.get(name, ()), missed.get(name, ()), whole.files, deployments.get(name, ())
        )
        for name in {**findings, **ignored, **missed}
    }


def _grouped(things: Iterable[T], key: Callable[[T], str]) -> dict[str, tuple[T, ...]]:
    groups: dict[str, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return {name: tuple(group) for name, group in groups.items()}


class ManifestFile(pytest.File):
    """A file that may hold deployments; most hold none, and have no items."""

    def __init__(self, *, run: Session, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run
        self.shown = os.path.relpath(self.path, self.config.invocation_params.dir)
        self.found = Found([], [], [])
        self.reading: FileReading | None = None

    def collect(self) -> Iterator[ManifestItem]:
        """An item for each deployment, and one for the file where something may be wrong with that."""
        is_named = self.session.isinitpath(self.path)
        self.found = find([self.shown], self.run.patterns, force_exclude=not is_named)
        for source in self.found.sources:
            self.reading = _with_distinct_names(read_file(source, self.run.world.library, self.run.world.settings))
        if self._has_faults_of_its_own():
            yield ManifestItem.from_parent(self, name=FILE)
        elif self.found.notes:
            yield ManifestItem.from_parent(self, name=FILE, not_run=f"not read: {self.found.notes[0].reason}")
        for deployment in self.reading.deployments if self.reading else ():
            engine = engines.engine(deployment.engine, self.run.world.settings.registry.engines)
            not_run = "" if engine.judged else f"{engine.label} is read and not judged"
            yield ManifestItem.from_parent(self, name=plain(deployment.name), deployment=deployment, not_run=not_run)

    def _has_faults_of_its_own(self) -> bool:
        reading = self.reading
        if reading is None:
            return bool(self.found.problems)
        return bool(reading.problems or reading.duplicates or (reading.deployments and ignores(reading.source)))


def _with_distinct_names(reading: FileReading) -> FileReading:
    """The second deployment of a name gets a number, so that items and findings can be told apart."""
    seen: Counter[str] = Counter()
    distinct = []
    for deployment in reading.deployments:
        seen[deployment.name] += 1
        number = seen[deployment.name]
        distinct.append(deployment if number == 1 else deployment._replace(name=f"{deployment.name}[{number}]"))
    return reading._replace(deployments=tuple(distinct))


class LayoutFailed(Exception):
    """What is wrong reaches the threshold; the text is the report."""


class ManifestItem(pytest.Item):
    """One deployment, or what is wrong with its file."""

    def __init__(
        self, *, parent: ManifestFile, deployment: Deployment | None = None, not_run: str = "", **rest: Any
    ) -> None:
        super().__init__(parent=parent, **rest)
        self.file = parent
        self.deployment = deployment
        self.add_marker(MARKER)
        if not_run:
            self.add_marker(pytest.mark.skip(reason=not_run))

    @property
    def subject(self) -> str:
        """The deployment's name as findings have it."""
        return self.deployment.name if self.deployment else ""

    @property
    def is_part(self) -> bool:
        """Whether the deployment is judged where another file makes it."""
        reading = self.file.reading
        return self.deployment is not None and (reading is None or self.deployment not in reading.deployments)

    def runtest(self) -> None:
        run = self.file.run
        report = run.report_of(self)
        self._note(report)
        if report.reaches(run.world.fail_on) or (run.world.strict and report.not_checked):
            raise LayoutFailed(run.text(self, report))
        if report.findings or report.not_checked:
            self.add_report_section("call", "shardlint", run.text(self, report))

    def _note(self, report: Report) -> None:
        for finding in report.findings:
            self.user_properties += [(CODE, finding.code), (FAMILY, finding.family)]
        if report.not_checked:
            self.user_properties.append((NOT_CHECKED, len(report.not_checked)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **options: Any) -> Any:
        """Our report as it is; a traceback would show nothing but this file."""
        if isinstance(excinfo.value, LayoutFailed):
            return str(excinfo.value)
        if isinstance(excinfo.value, (RuleFailed, BrokenRule, PluginFailed)):
            return f"shardlint: {excinfo.value}"
        return super().repr_failure(excinfo, *arguments, **options)

    def reportinfo(self) -> tuple[Path, int, str]:
        line = self.deployment.at.line if self.deployment else 1
        return self.path, line - 1, f"{self.file.shown}: {self.name}"
