"""What the user says that no manifest does, and what the run works with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from shardlint.check.naming import names
from shardlint.findings import Rule
from shardlint.plugins import Registry, built_in

if TYPE_CHECKING:
    from shardlint.facts.hardware import Hardware


class Settings:
    """`select` and `ignore` take codes, beginnings of codes (`SL1`), names and families; empty selects all.

    `vllm` is the release to judge by where a manifest does not tell its own, `hardware` the GPUs where it does not tell
    them, and `environment` the variables that the engine will find set, under those of the manifest.  `registry` holds
    rules, forms, engines, families, cards and models; `shardlint.plugins.load` adds those of plugins.  `upgrade` is the
    release of vLLM to judge by whatever the manifests say.
    """

    def __init__(
        self,
        select: tuple[str, ...] = (),
        ignore: tuple[str, ...] = (),
        vllm: str | None = None,
        hardware: Hardware | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        registry: Registry | None = None,
        upgrade: str | None = None,
    ) -> None:
        self.select = select
        self.ignore = ignore
        self.vllm = vllm
        self.hardware = hardware
        self.environment = environment
        self.upgrade = upgrade
        self.registry = built_in() if registry is None else registry

    def upgraded(self, release: str) -> Settings:
        """The same for another release of vLLM than the manifests'."""
        given = (self.select, self.ignore, release, self.hardware, self.environment, self.registry, release)
        return Settings(*given)

    def wants(self, rule: Rule) -> bool:
        """Whether a rule is to run."""
        return (not self.select or _named(rule, self.select)) and not _named(rule, self.ignore)


def _named(rule: Rule, words: tuple[str, ...]) -> bool:
    return any(names(word, rule.name, rule.code, rule.family) for word in words)
