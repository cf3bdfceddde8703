"""What another release of the engine would change, for a person and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from shardlint.deployment import Deployment
from shardlint.findings import Finding
from shardlint.findings.words import counted
from shardlint.report.json import SCHEMA, finding_json
from shardlint.report.paint import paint
from shardlint.report.plain import plain


class Upgrade(Protocol):
    """What changes for one deployment; `since` is the release that it is judged by now, None for the newest known."""

    @property
    def deployment(self) -> Deployment: ...
    @property
    def since(self) -> str | None: ...
    @property
    def appear(self) -> tuple[Finding, ...]: ...
    @property
    def go(self) -> tuple[Finding, ...]: ...


NOT_SAID = "a release that nobody says"


def upgrade_text(upgrades: Sequence[Upgrade], release: str, colour: bool) -> Iterator[str]:
    """Each deployment that changes with what appears (+) and what goes (-), then the counts."""
    for upgrade in upgrades:
        if upgrade.appear or upgrade.go:
            at = upgrade.deployment.at
            name = paint(f"{plain(at.path)}:{at.line}: {plain(upgrade.deployment.name)}", "strong", colour)
            yield f"{name}: from {_since(upgrade)} to vLLM {release}"
            yield from (_line("+", finding, colour) for finding in upgrade.appear)
            yield from (_line("-", finding, colour) for finding in upgrade.go)
            yield ""
    counts = _summary(upgrades)
    yield (
        f"{counts['changed']} of {counted(counts['deployments'], 'deployment')} of vLLM would change with {release}: "
        f"{counted(counts['appear'], 'finding')} would appear, {counts['go']} would go"
    )


def _since(upgrade: Upgrade) -> str:
    return NOT_SAID if upgrade.since is None else f"vLLM {upgrade.since}"


def _line(sign: str, finding: Finding, colour: bool) -> str:
    label = paint(f"{finding.severity}[{finding.code} {finding.rule}]", finding.severity, colour)
    return f"{sign} {plain(finding.path)}:{finding.line}:{finding.column}: {label}: {plain(finding.message)}"


def upgrade_json(upgrades: Sequence[Upgrade], release: str) -> str:
    """The same as JSON; every deployment of vLLM is listed."""
    listed: list[dict[str, Any]] = [
        {
            "deployment": upgrade.deployment.name,
            "path": upgrade.deployment.at.path,
            "line": upgrade.deployment.at.line,
            "column": upgrade.deployment.at.column,
            "from": upgrade.since,
            "appear": [finding_json(finding) for finding in upgrade.appear],
            "go": [finding_json(finding) for finding in upgrade.go],
        }
        for upgrade in upgrades
    ]
    document = {"schema": SCHEMA, "against": release, "deployments": listed, "summary": _summary(upgrades)}
    return json.dumps(document, indent=2)


def _summary(upgrades: Sequence[Upgrade]) -> dict[str, int]:
    return {
        "deployments": len(upgrades),
        "changed": sum(bool(upgrade.appear or upgrade.go) for upgrade in upgrades),
        "appear": sum(len(upgrade.appear) for upgrade in upgrades),
        "go": sum(len(upgrade.go) for upgrade in upgrades),
    }
