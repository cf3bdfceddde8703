"""The plugins of other distributions, loaded through pluggy, and their rows put beside shardlint's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any, TypeVar

import pluggy

from shardlint.architectures import Family
from shardlint.engines import Engine
from shardlint.facts import Accelerator
from shardlint.findings import Rule
from shardlint.manifests import Form
from shardlint.plugins import hooks
from shardlint.plugins.registry import Plugin, PluginFailed, Registry
from shardlint.rules import BrokenRule, sorted_rules

T = TypeVar("T")

FAILURES = (Exception, SystemExit)
"""What a plugin may raise: a sys.exit() of its own would end the run as if nothing had been found."""


@dataclass(slots=True, eq=False)  # told apart by what it is, as modules are
class GuardedForm:
    """A plugin's form, whose mistakes bear the plugin's name."""

    NAME: str
    FILES: tuple[str, ...]
    launches: Callable[..., Any]


def with_outside(own: Registry) -> Registry:
    """The registry with the rows of all plugins. Raises PluginFailed."""
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    plugins = tuple(_registered(manager))
    rules = [rule._replace(plugin=name) for name, rule in _items(manager, "shardlint_rules", Rule)]
    engines = {
        engine.name: _guarded_engine(name, engine) for name, engine in _items(manager, "shardlint_engines", Engine)
    }
    return Registry(
        rules=_together(own.rules, rules),
        forms=(*own.forms, *(_guarded_form(name, form) for name, form in _items(manager, "shardlint_manifests"))),
        engines=(*(engine for engine in own.engines if engine.name not in engines), *engines.values()),
        families={**own.families, **_families(manager)},
        accelerators=tuple(card for _, card in _items(manager, "shardlint_hardware", Accelerator)),
        models={key: config for _, key, config in _rows(manager, "shardlint_models")},
        plugins=plugins,
    )


def _registered(manager: pluggy.PluginManager) -> Iterator[Plugin]:
    for distribution, point in _entry_points():
        try:
            manager.register(point.load(), name=point.name)
            manager.check_pending()
        except FAILURES as cause:
            raise PluginFailed(point.name, "does not load", cause) from cause
        yield Plugin(point.name, distribution.metadata["Name"], distribution.version)


def _entry_points() -> list[tuple[Distribution, EntryPoint]]:
    """By name, so that the order of installation changes nothing; an editable install may be listed twice."""
    found = {
        point.name: (distribution, point)
        for distribution in distributions()
        for point in distribution.entry_points
        if point.group == hooks.PROJECT
    }
    return [found[name] for name in sorted(found)]


def _answers(manager: pluggy.PluginManager, hook: str) -> Iterator[tuple[str, Any]]:
    """What each plugin answers to a hook, with the plugin's name."""
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        name = implementation.plugin_name
        yield name, _guard(name, f"fails in {hook}", implementation.function)()


def _items(manager: pluggy.PluginManager, hook: str, kind: type[T] | None = None) -> Iterator[tuple[str, Any]]:
    for name, answer in _answers(manager, hook):
        items: list[Any] = _guard(name, f"fails in {hook}", list)(answer)
        for item in items:
            if kind is not None and not isinstance(item, kind):
                raise PluginFailed(name, f"fails in {hook}", f"{item!r:.80} is no {kind.__name__}")
            yield name, item


def _rows(manager: pluggy.PluginManager, hook: str) -> Iterator[tuple[str, str, Any]]:
    """The plugin, the key and the value of each row of a hook that answers with a mapping."""
    for name, answer in _answers(manager, hook):
        if not isinstance(answer, Mapping):
            raise PluginFailed(name, f"fails in {hook}", f"{answer!r:.80} is no mapping")
        for key, value in answer.items():
            yield name, str(key), value


def _guard(plugin: str, what: str, function: Callable[..., T]) -> Callable[..., T]:
    """The same function, whose exceptions bear the plugin's name. Not for rules: their parameters are read."""

    @wraps(function)
    def guarded(*arguments: Any, **options: Any) -> T:
        try:
            return function(*arguments, **options)
        except PluginFailed:
            raise
        except FAILURES as cause:
            raise PluginFailed(plugin, what, cause) from cause

    return guarded


def _guarded_form(plugin: str, form: Any) -> Form:
    try:
        name, files, launches = str(form.NAME), tuple(form.FILES), form.launches
    except AttributeError as cause:
        raise PluginFailed(plugin, "fails in shardlint_manifests", cause) from cause

    def all_launches(*arguments: Any) -> Iterable[Any]:
        return tuple(launches(*arguments))  # here, so that a generator raises inside the guard

    return GuardedForm(name, files, _guard(plugin, f"fails in its form {name}", all_launches))


def _guarded_engine(plugin: str, engine: Engine) -> Engine:
    callables = {
        name: _guard(plugin, f"fails in its engine {engine.name}", function)
        for name in ("cut", "pp_support", "known_class")
        if (function := getattr(engine, name)) is not None
    }
    changed: dict[str, Any] = callables
    return engine._replace(**changed)


def _families(manager: pluggy.PluginManager) -> dict[str, Family]:
    """A family may say that a number is missing: that exception is its answer and passes."""
    from shardlint.architectures.model import Missing

    def guarded(plugin: str, name: str, family: Family) -> Family:
        def rows(model: Any) -> Any:
            try:
                return family(model)
            except Missing:
                raise
            except FAILURES as cause:
                raise PluginFailed(plugin, f"fails in its family {name}", cause) from cause

        return rows

    return {name: guarded(plugin, name, family) for plugin, name, family in _rows(manager, "shardlint_architectures")}


def _together(own: tuple[Rule, ...], more: list[Rule]) -> tuple[Rule, ...]:
    try:
        return sorted_rules([*own, *more])
    except BrokenRule as cause:
        culprit = next((rule.plugin for rule in more if rule.name == cause.rule), "") or cause.rule
        raise PluginFailed(culprit, "brings a rule that cannot be used", str(cause)) from cause
