"""What the user says that no manifest does, and what the run works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shardlint.findings import Rule
from shardlint.plugins import Registry, built_in

if TYPE_CHECKING:
    from shardlint.facts.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Settings:
    """`select` and `ignore` take codes, beginnings of codes (`SL1`), names and families; empty selects all."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    vllm: str | None = None
    """The release to judge by where a manifest does not tell its own."""
    hardware: Hardware | None = None
    """The GPUs, where a manifest does not tell them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the engine will find set, under those of the manifest."""
    registry: Registry = field(default_factory=built_in)
    """Rules, forms, engines, families, cards and models; `shardlint.plugins.load` adds those of plugins."""

    def wants(self, rule: Rule) -> bool:
        """Whether a rule is to run."""
        return (not self.select or _named(rule, self.select)) and not _named(rule, self.ignore)


def _named(rule: Rule, words: tuple[str, ...]) -> bool:
    names = (rule.name, rule.family)
    return any(word in names or rule.code.startswith(word.upper()) for word in words)
