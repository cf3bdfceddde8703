"""Other layouts of one deployment, judged by the rules that judge its own."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from typing import Any

from shardlint.check.facts import DeploymentFacts
from shardlint.check.judging import said_of
from shardlint.check.settings import Settings
from shardlint.check.sharing import Shared
from shardlint.deployment import Deployment
from shardlint.findings import Finding, Located, NotChecked, Rule
from shardlint.findings.records import NamedTuple
from shardlint.text import Library

ADVICE = frozenset({"legal"})
"""Facts by which rules advise, and do not judge."""


class Tried(NamedTuple):
    """What the rules say of one layout, and the facts that they asked for."""

    facts: DeploymentFacts
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]


class Trial:
    """Layouts of one deployment; what they have in common (model, rows) is worked out once."""

    def __init__(
        self, deployment: Deployment, library: Library, settings: Settings, shared: Shared | None = None
    ) -> None:
        self.deployment = deployment
        self._library = library
        self._settings = settings
        self._shared = Shared() if shared is None else shared

    @cached_property
    def _rules(self) -> list[Rule]:
        return [rule for rule in self._settings.registry.rules if self._settings.wants(rule)]

    def facts(self, knobs: Mapping[str, Any]) -> DeploymentFacts:
        """The facts of the deployment with other values of some knobs; None leaves a knob unwritten."""
        changed = {**self.deployment.knobs, **{name: Located(value) for name, value in knobs.items()}}
        kept = {name: value for name, value in changed.items() if knobs.get(name, ...) is not None}
        deployment = self.deployment._replace(knobs=kept)
        return DeploymentFacts(deployment, self._library, self._settings, shared=self._shared)

    def of(self, knobs: Mapping[str, Any]) -> Tried:
        """The same, judged by every rule that the settings want."""
        facts = self.facts(knobs)
        said = list(said_of(facts.deployment, facts, self._rules))
        return Tried(
            facts,
            tuple(dict.fromkeys(item for item in said if isinstance(item, Finding))),
            tuple(item for item in said if isinstance(item, NotChecked)),
        )

    def findings(self, knobs: Mapping[str, Any], families: Container[str]) -> Iterator[Finding]:
        """What the rules of some families find in the same, judged no further than it is asked for.

        Their advice does not say what else would be legal.
        """
        facts = self.facts(knobs)
        rules = [rule for rule in self._rules if rule.family in families]
        return (item for item in said_of(facts.deployment, facts, rules, ADVICE) if isinstance(item, Finding))
