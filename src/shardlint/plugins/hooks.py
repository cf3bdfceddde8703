"""The six hooks. Each is called once, takes nothing, and returns things; a plugin implements those that it needs.

    from shardlint.plugins.hooks import hookimpl

    @hookimpl
    def shardlint_rules():
        from my_package import my_rule
        return [my_rule.RULE]

The module stands in the entry point group `shardlint` of its distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pluggy

from shardlint.architectures import Family
from shardlint.engines import Engine
from shardlint.facts import Accelerator
from shardlint.findings import Rule
from shardlint.manifests import Form

PROJECT = "shardlint"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def shardlint_rules() -> Iterable[Rule]:  # type: ignore[empty-body]
    """Rules, each with its page in `Rule.page`."""


@hookspec
def shardlint_manifests() -> Iterable[Form]:  # type: ignore[empty-body]
    """Forms of manifest: modules or objects with NAME, FILES and launches."""


@hookspec
def shardlint_engines() -> Iterable[Engine]:  # type: ignore[empty-body]
    """Engines, each with its cutting table; one that bears the name of a known engine takes its place."""


@hookspec
def shardlint_architectures() -> Mapping[str, Family]:  # type: ignore[empty-body]
    """Families by the model class that config.json names: functions from a model's numbers to its rows."""


@hookspec
def shardlint_hardware() -> Iterable[Accelerator]:  # type: ignore[empty-body]
    """Cards, found by their `id` and `name`."""


@hookspec
def shardlint_models() -> Mapping[str, Mapping[str, Any]]:  # type: ignore[empty-body]
    """Contents of config.json by model id."""
