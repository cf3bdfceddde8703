"""The commands: what each reads, asks and prints. No opinion about layouts lives here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardlint.findings import SEVERITIES, Finding, Problem, Report, Severity, Span
from shardlint.front.failures import CannotRun
from shardlint.front.main import put
from shardlint.front.options import Options, parse

if TYPE_CHECKING:
    from shardlint.check import Settings
    from shardlint.facts.hardware import Hardware
    from shardlint.front.files import Found
    from shardlint.front.library import DiskLibrary
    from shardlint.plugins import Registry
    from shardlint.report.json import Effective, Memory

DEFAULT_FAIL_ON: Severity = "warning"


def run(words: list[str]) -> int:
    """Carry out one command line; its exit code. Raises CannotRun."""
    options = parse(words)
    from shardlint.check import RuleFailed
    from shardlint.plugins import PluginFailed
    from shardlint.rules import BrokenRule

    commands = {
        "check": check,
        "inspect": inspect,
        "smoke": smoke,
        "model": model,
        "models": models,
        "show": show,
        "plan": plan,
        "explain": explain,
        "rules": rules,
    }
    try:
        return commands[options.command](options)
    except (BrokenRule, RuleFailed, PluginFailed) as failure:
        raise CannotRun(str(failure)) from failure


def versions() -> int:
    """Print the version, and the plugins with theirs."""
    from shardlint import plugins
    from shardlint._version import __version__

    try:
        found = plugins.load().plugins
    except plugins.PluginFailed as failure:
        raise CannotRun(str(failure)) from failure
    listed = [f"plugin {plugin.name} ({plugin.distribution} {plugin.version})" for plugin in found]
    _print("\n".join([f"shardlint {__version__}", *(listed or ["no plugins"])]))
    return 0


def check(options: Options) -> int:
    """Print what is wrong; 1 where something reaches the threshold."""
    from shardlint import check as checking

    options = with_project_settings(options)
    settings = settings_of(options)
    found, library = _look(options, settings)
    if options.against is not None:
        return _compare(options, settings, found, library)
    report = _with_files(checking.check(found.sources, library, settings), found, settings)
    if options.format == "json":
        from shardlint.report.json import check_json

        _print(check_json(report))
    else:
        texts = {**dict(library.texts()), **dict(text for source in found.sources for text in source.texts())}
        if options.diff:
            from shardlint.report.diff import diff_text

            _print("\n".join(diff_text(report, texts)))
        else:
            from shardlint.report.text import check_text

            _print("\n".join(check_text(report, texts, _paint(options))))
    return int(_fails(report, options))


def _compare(options: Options, settings: Settings, found: Found, library: DiskLibrary) -> int:
    """Print what another release would change; 1 where something that reaches the threshold appears."""
    from shardlint.check.upgrading import changes
    from shardlint.report.upgrade import upgrade_json, upgrade_text

    release = _release(options.against, "--against")
    assert release is not None, options
    upgrades, report = changes(found.sources, library, settings, release)
    appear = tuple(finding for upgrade in upgrades for finding in upgrade.appear)
    if options.format == "json":
        _print(upgrade_json(upgrades, release))
    else:
        _print("\n".join(upgrade_text(upgrades, release, _paint(options))))
    return int(report._replace(findings=appear).reaches(threshold(options)))


def inspect(options: Options) -> int:
    """Print what was read."""
    from shardlint import check as checking

    options = with_project_settings(options)
    settings = settings_of(options)
    found, library = _look(options, settings)
    report = _with_files(checking.read(found.sources, library, settings), found, settings)
    effective, memories = _inferred(report, library, settings)
    if options.format == "json":
        from shardlint.report.json import inspect_json

        _print(inspect_json(report, effective, memories))
    else:
        from shardlint.report.inspection import inspect_text

        _print("\n".join(inspect_text(report, effective, memories, _paint(options))))
    return 0


def smoke(options: Options) -> int:
    """Try the layout of one deployment on this host; 1 where a claim does not hold."""
    from shardlint import check as checking
    from shardlint.check.facts import DeploymentFacts
    from shardlint.front.smoke import chosen, emit, try_out

    options = with_project_settings(options)
    settings = settings_of(options)
    found, library = _look(options, settings)
    deployment = chosen(checking.read(found.sources, library, settings).deployments, options.deployment)
    facts = DeploymentFacts(deployment, library, settings)
    if options.emit is not None:
        _print(emit(facts, options, {source.path: source.text for source in found.sources}))
        return 0
    code, text = try_out(facts, options)
    if text:
        _print(text)
    return code


def model(options: Options) -> int:
    """Print what is known of one model, and how it can be split."""
    from shardlint.front.model_command import describe
    from shardlint.report.model import model_json, model_text

    options = with_project_settings(options)
    report = describe(options.model, _library(options), settings_of(options))
    _print(model_json(report) if options.format == "json" else "\n".join(model_text(report)))
    return 0


def show(options: Options) -> int:
    """Draw the layout of one deployment."""
    from shardlint import check as checking
    from shardlint.check.facts import DeploymentFacts
    from shardlint.front import show_command
    from shardlint.front.smoke import chosen

    options = with_project_settings(options)
    settings = settings_of(options)
    found, library = _look(options, settings)
    deployment = chosen(checking.read(found.sources, library, settings).deployments, options.deployment)
    known = show_command.shown(DeploymentFacts(deployment, library, settings), options)
    show_command.write_pictures(known, options)
    text = show_command.as_text(known, colour=_paint(options), derive=options.derive)
    _print(show_command.as_json(known) if options.format == "json" else "\n".join(text))
    return 0


def plan(options: Options) -> int:
    """Print the layouts that would serve a model on given GPUs; 1 where none does, or none what was asked for."""
    from shardlint import check as checking
    from shardlint.front import plan_command
    from shardlint.front.smoke import chosen
    from shardlint.report.plan import plan_json, plan_text

    manifest = plan_command.is_manifest(options.model)
    options = with_project_settings(options._replace(paths=(options.model,) if manifest else ()))
    if options.nodes is not None and options.gpus is None:
        raise CannotRun(f"--nodes {options.nodes} says of how many nodes, and {plan_command.NO_GPUS}")
    settings = settings_of(options)
    if manifest:
        found, library = _look(options, settings)
        deployment = chosen(checking.read(found.sources, library, settings).deployments, options.deployment)
    else:
        library = _library(options)
        deployment = plan_command.deployment_of(options.model, library, settings)
    made = plan_command.made_for(deployment, library, settings, options)
    if options.emit is not None:
        _print(plan_command.emit(made, options).rstrip("\n"))
        return 0
    report = plan_command.reported(made, settings)
    shown = {"shown": None} if options.all else {}
    _print(plan_json(report) if options.format == "json" else "\n".join(plan_text(report, _paint(options), **shown)))
    return int(not made.plan.holds_what_is_asked)


def models(options: Options) -> int:
    """Keep what a hub says of models, or print from where they are known."""
    if options.action == "add":
        from shardlint.front.models_add import add

        return add(options.ids, options.timeout)
    from shardlint import check as checking
    from shardlint.check.facts import DeploymentFacts
    from shardlint.front import models_list

    options = with_project_settings(options)
    settings = settings_of(options)
    found, library = _look(options, settings)
    deployments = checking.read(found.sources, library, settings).deployments
    listed = models_list.uses((DeploymentFacts(one, library, settings) for one in deployments), library)
    _print(models_list.as_json(listed) if options.format == "json" else models_list.as_text(listed))
    return 0


def explain(options: Options) -> int:
    """Print the page of one rule."""
    from shardlint.front.rulebook import rule_called
    from shardlint.rules import page

    _print(page(rule_called(options.rule, _registry(options).rules)).rstrip("\n"))
    return 0


def rules(options: Options) -> int:
    """Print all rules and families."""
    from shardlint.front import rulebook

    known = _registry(options).rules
    _print(rulebook.as_json(known) if options.format == "json" else rulebook.as_text(known))
    return 0


def with_project_settings(options: Options) -> Options:
    """The options, completed by what [tool.shardlint] says; what is said on the command line wins."""
    from shardlint.front.settings import read_settings

    project = read_settings(options.paths, options.config)
    said = {name: getattr(options, name) for name in project._fields}
    return options._replace(**{name: getattr(project, name) for name, value in said.items() if value is None})


def _look(options: Options, settings: Settings) -> tuple[Found, DiskLibrary]:
    """Find the files and open the library."""
    from shardlint.front.files import find

    library = _library(options)
    patterns = (pattern for form in settings.registry.forms for pattern in form.FILES)
    found = find(options.paths, patterns, force_exclude=options.force_exclude)
    if options.render:
        from shardlint.front.rendering import render  # starts programs, which nothing else does

        found = render(options.paths, found)
    return found, library


def _library(options: Options) -> DiskLibrary:
    from shardlint.front.library import DiskLibrary
    from shardlint.front.settings import project_folder

    project = project_folder(options.paths)
    return DiskLibrary(options.paths, models=options.models, project=project, environ=os.environ)


def settings_of(options: Options) -> Settings:
    """What check is told. Raises CannotRun for a rule, version or GPU that there is not."""
    from shardlint.check import Settings
    from shardlint.front.rulebook import known_words

    registry = _registry(options)
    return Settings(
        select=known_words("--select", options.select or (), registry.rules),
        ignore=known_words("--ignore", options.ignore or (), registry.rules),
        vllm=_release(options.vllm),
        hardware=_hardware(options, registry),
        registry=registry,
    )


def _registry(options: Options) -> Registry:
    """Shardlint's own rows, and those of plugins unless they are not wanted."""
    from shardlint import plugins

    return plugins.load(outside=not options.no_plugins)


def _release(text: str | None, option: str = "--vllm") -> str | None:
    if text is None:
        return None
    from shardlint.engines.versions import Version

    if Version.parse(text) is None:
        raise CannotRun(f"{option} {text}: not a release such as 0.33.0")
    return text


def _hardware(options: Options, registry: Registry) -> Hardware | None:
    if options.gpus is not None:
        from shardlint.front.plan_command import hardware_of

        return hardware_of(options.gpus, options.nodes or 1, registry.accelerators)
    text = options.hardware
    if text is None:
        return None
    from shardlint.facts import hardware_spec

    hardware = hardware_spec.parse(text, registry.accelerators)
    if isinstance(hardware, str):
        raise CannotRun(f"--hardware {text}: {hardware}")
    return hardware


def _with_files(report: Report, found: Found, settings: Settings) -> Report:
    """The report with what was found out about files before any of them was read as a manifest."""
    files = sorted((*report.files, *found.notes), key=lambda note: note.path)
    findings = (*report.findings, *file_findings(found.problems, settings))
    return report._replace(files=tuple(files), findings=tuple(sorted(findings, key=_order)))


def file_findings(problems: Sequence[Problem], settings: Settings) -> Iterator[Finding]:
    """The findings on files whose bytes could not be read as text."""
    if not problems:
        return
    from shardlint.rules.unreadable_file import RULE

    if settings.wants(RULE):
        for problem in problems:
            assert isinstance(problem.at, Span)  # the search knows the byte
            yield Finding(
                RULE.code,
                RULE.name,
                RULE.family,
                RULE.severity,
                RULE.effect,
                problem.certainty,
                problem.at,
                problem.message,
                help=problem.help,
                url=RULE.url,
            )


def _order(finding: Finding) -> tuple[str, int, int, str, str]:
    return finding.path, finding.line, finding.column, finding.code, finding.message


def _fails(report: Report, options: Options) -> bool:
    return report.reaches(threshold(options)) or (options.strict and bool(report.not_checked))


def threshold(options: Options) -> Severity:
    """The least severity that fails a run."""
    return next((severity for severity in SEVERITIES if severity == options.fail_on), DEFAULT_FAIL_ON)


def _inferred(report: Report, library: DiskLibrary, settings: Settings) -> tuple[list[Effective], list[Memory]]:
    """Of each deployment what the engine will work with, defaults included, and what its GPUs keep for the KV cache."""
    from shardlint.check.capacity import capacity_of
    from shardlint.check.facts import DeploymentFacts
    from shardlint.check.sharing import Shared
    from shardlint.report.fields import ALL_KNOB_FIELDS

    shared = Shared()
    all_facts = [DeploymentFacts(one, library, settings, (one,), shared) for one in report.deployments]
    effective: list[Effective] = [{name: facts.knob(name) for name in ALL_KNOB_FIELDS} for facts in all_facts]
    return effective, [capacity_of(facts) for facts in all_facts]


def _paint(options: Options) -> bool:
    """Whether to use colours: only for a person at a terminal who has not said no."""
    unwanted = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not unwanted and sys.stdout.isatty()


def _print(text: str) -> None:
    put(text + "\n")
