"""What a run works with: rules, forms, engines, families, hardware, models, and who brought them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from shardlint import engines, manifests, rules
from shardlint.architectures import FAMILIES, Family
from shardlint.engines import Engine
from shardlint.facts import Accelerator
from shardlint.findings import Rule
from shardlint.findings.records import NamedTuple
from shardlint.manifests import Form


class PluginFailed(Exception):
    """A plugin that does not load, or raises: the run cannot vouch for its result."""

    def __init__(self, plugin: str, what: str, cause: BaseException | str) -> None:
        reason = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        super().__init__(f"the plugin {plugin} {what}: {reason}")
        self.plugin = plugin


class Plugin(NamedTuple):
    """A distribution that brings rows of its own."""

    name: str
    distribution: str
    version: str


class Registry(NamedTuple):
    """All rows of one run, shardlint's own first."""

    rules: tuple[Rule, ...]
    forms: tuple[Form, ...]
    engines: tuple[Engine, ...]
    families: Mapping[str, Family]
    """By the name of the model class."""
    accelerators: tuple[Accelerator, ...] = ()
    """Cards beside those of shardlint's own table."""
    models: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Contents of config.json by model id, beside the built-in catalogue."""
    plugins: tuple[Plugin, ...] = ()


@cache
def built_in() -> Registry:
    """Shardlint's own rows."""
    return Registry(rules.all_rules(), manifests.forms(), engines.engines(), FAMILIES)
