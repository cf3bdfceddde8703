"""One layout, checked in a test of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardlint.check.command import COMMAND_PATH, OneModel, read_command
from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import FileReading
from shardlint.check.run import judge_all
from shardlint.check.settings import Settings
from shardlint.deployment import Deployment
from shardlint.facts import hardware_spec
from shardlint.findings import Located, Report, Severity, Unknown
from shardlint.report.text import check_text
from shardlint.text import Library


class Catalogue(Library):
    """A library without files: models are those of the built-in catalogue."""

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"no config.json of {model_id} is given", settle_by="config= with its content")

    def sibling(self, path: str) -> Unknown:
        return Unknown(f"{path} is not given beside the command")


@dataclass(frozen=True, slots=True, repr=False)  # pytest prints it above every failure
class LayoutChecker:
    """Checks layouts with one set of settings; the pytest fixture `shardlint` is one with those of the project."""

    library: Library = field(default_factory=Catalogue)
    settings: Settings = field(default_factory=Settings)
    fail_on: Severity = "warning"
    """The least severity that fails."""
    strict: bool = False
    """Whether it fails too where a rule could not run because a fact is missing."""

    def assert_layout(
        self,
        command: Sequence[str] | str,
        *,
        model: str | None = None,
        config: Mapping[str, Any] | None = None,
        side_files: Mapping[str, Any] | None = None,
        hardware: str | None = None,
        env: Mapping[str, str] | None = None,
        engine_version: str | None = None,
    ) -> Report:
        """Raise AssertionError, with the report as its text, where the layout of a command reaches the threshold.

        `command` is what is started, as words or as text: `vllm serve Qwen/Qwen3-8B -tp 2`.  Its model is the one
        that it names; `model` names another (for a command that is given a path or an alias), and `config` is the
        content of a config.json, with `side_files` by their names.  `hardware` says what the command runs on, as
        `--hardware` does: `2x8xH100`.  `env` is the environment of the command, `engine_version` a vLLM release.

        Also fails for a command whose engine is not judged, or whose model is not known: nothing would be checked.
        Returns the report, for assertions of one's own.  Raises ValueError for hardware that is none.
        """
        __tracebackhide__ = True
        if model is not None and config is not None:
            raise ValueError("model and config both say what the model is; give one of them")
        settings = self._settings(hardware, env, engine_version)
        library = self.library if config is None else OneModel(config, side_files)
        reading = _of_model(read_command(command, library, settings), model)
        self._require_judgement(reading, library, settings)
        report = judge_all([reading], library, settings)
        if report.reaches(self.fail_on) or (self.strict and report.not_checked):
            raise AssertionError("\n".join(check_text(report, {COMMAND_PATH: reading.source.text}, colour=False)))
        return report

    def _settings(self, hardware: str | None, env: Mapping[str, str] | None, engine_version: str | None) -> Settings:
        given = self.settings.hardware
        if hardware is not None:
            parsed = hardware_spec.parse(hardware, self.settings.registry.accelerators)
            if isinstance(parsed, str):
                raise ValueError(f"hardware {hardware!r}: {parsed}")
            given = parsed
        return Settings(
            self.settings.select,
            self.settings.ignore,
            engine_version or self.settings.vllm,
            given,
            {**self.settings.environment, **(env or {})},
            self.settings.registry,
        )

    def _require_judgement(self, reading: FileReading, library: Library, settings: Settings) -> None:
        __tracebackhide__ = True
        if not reading.deployments:
            raise AssertionError(f"the command starts no engine that is known: {reading.source.text}")
        for deployment in reading.deployments:
            facts = DeploymentFacts(deployment, library, settings)
            if not facts.engine.judged:
                raise AssertionError(f"{facts.engine.label} is read and not judged: nothing was checked")
            if isinstance(facts.geometry, Unknown):
                raise AssertionError(f"the model is not known: {facts.geometry.reason}; give model= or config=")


def _of_model(reading: FileReading, model: str | None) -> FileReading:
    """The reading with another model's name in it, at the place of the one that the command names."""
    if model is None:
        return reading
    return reading._replace(deployments=tuple(d._replace(model=_named(model, d)) for d in reading.deployments))


def _named(model: str, deployment: Deployment) -> Located[str]:
    written = deployment.model
    span = written.span if written is not None else None
    return Located(model, span, origin="given", source="the call's model")


def assert_layout(
    command: Sequence[str] | str,
    *,
    model: str | None = None,
    config: Mapping[str, Any] | None = None,
    side_files: Mapping[str, Any] | None = None,
    hardware: str | None = None,
    env: Mapping[str, str] | None = None,
    engine_version: str | None = None,
    fail_on: Severity = "warning",
    strict: bool = False,
) -> Report:
    """`LayoutChecker.assert_layout` with nothing but what the call says: no files, no settings of the project."""
    __tracebackhide__ = True
    return LayoutChecker(fail_on=fail_on, strict=strict).assert_layout(
        command,
        model=model,
        config=config,
        side_files=side_files,
        hardware=hardware,
        env=env,
        engine_version=engine_version,
    )
