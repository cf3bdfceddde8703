"""The smoke test in pytest: one item for each deployment below the test paths, run on the devices of this host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from shardlint import smoke
from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import read_file
from shardlint.deployment import Deployment
from shardlint.front.failures import CannotRun
from shardlint.front.files import find
from shardlint.front.options import Options
from shardlint.front.pytest_session import World
from shardlint.front.smoke import asked_for
from shardlint.report.plain import plain
from shardlint.smoke import report

MARKER = "shardlint_smoke"


def start(config: pytest.Config) -> None:
    """Begin to collect deployments. Raises pytest.UsageError for settings that make no sense."""
    config.addinivalue_line("markers", f"{MARKER}: the layout of a deployment, tried by processes on this host")
    config.pluginmanager.register(Trials(World.of(config)), "shardlint-smoke")


class Trials:
    """The hooks of one run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.patterns = tuple(pattern for form in world.settings.registry.forms for pattern in form.FILES)

    def pytest_collect_file(self, file_path: Any, parent: pytest.Collector) -> TrialFile | None:
        if any(file_path.match(pattern) for pattern in self.patterns):
            return TrialFile.from_parent(parent, path=file_path, run=self)
        return None


class TrialFile(pytest.File):
    """A file that may hold deployments."""

    def __init__(self, *, run: Trials, **rest: Any) -> None:
        super().__init__(**rest)
        self.world = run.world
        self.patterns = run.patterns
        self.shown = os.path.relpath(self.path, self.config.invocation_params.dir)

    def collect(self) -> Iterator[TrialItem]:
        found = find([self.shown], self.patterns, force_exclude=not self.session.isinitpath(self.path))
        for source in found.sources:
            for deployment in read_file(source, self.world.library, self.world.settings).deployments:
                yield TrialItem.from_parent(self, name=f"{plain(deployment.name)}[smoke]", deployment=deployment)


class LayoutBroke(Exception):
    """What was tried does not hold; the text is the report."""


class TrialItem(pytest.Item):
    """One deployment, whose ranks are started."""

    def __init__(self, *, parent: TrialFile, deployment: Deployment, **rest: Any) -> None:
        super().__init__(parent=parent, **rest)
        self.file = parent
        self.deployment = deployment
        self.add_marker(MARKER)

    def runtest(self) -> None:
        world, name = self.file.world, self.deployment.name
        try:
            asked = asked_for(DeploymentFacts(self.deployment, world.library, world.settings), Options("smoke"))
        except CannotRun as reason:
            pytest.skip(str(reason))
        result = smoke.run(asked.plan, asked.trial)
        if result.could_not_run:
            pytest.skip(report.headline(result, name))
        text = report.text(result, name)
        if result.exit_code:
            raise LayoutBroke(text)
        self.add_report_section("call", "shardlint smoke", text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **options: Any) -> Any:
        """Our report as it is; a traceback would show nothing but this file."""
        if isinstance(excinfo.value, LayoutBroke):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *arguments, **options)

    def reportinfo(self) -> tuple[Any, int, str]:
        return self.path, self.deployment.at.line - 1, f"{self.file.shown}: {self.name}"
