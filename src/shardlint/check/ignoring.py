"""`# shardlint: ignore[NAME] reason`: which findings it covers, and which of them covered nothing."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.check.naming import names
from shardlint.findings import Finding, Ignore, NotChecked, Rule


def covers(ignore: Ignore, finding: Finding) -> bool:
    """Whether a comment stands for a finding: on a line of it, and naming its rule, code or family."""
    on_line = finding.path == ignore.span.path and finding.line <= ignore.line <= finding.end_line
    return on_line and any(names(word, finding.rule, finding.code, finding.family) for word in ignore.names)


def split(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], list[Finding], list[Ignore]]:
    """The findings to show, those that a comment covers, and the comments that cover none."""
    shown: list[Finding] = []
    covered: list[Finding] = []
    used: set[int] = set()
    for finding in findings:
        standing = [i for i, ignore in enumerate(ignores) if covers(ignore, finding)]
        used.update(standing)
        (covered if standing else shown).append(finding)
    return shown, covered, [ignore for i, ignore in enumerate(ignores) if i not in used]


def is_settled(ignore: Ignore, unheard: Sequence[Rule], missed: Sequence[NotChecked]) -> bool:
    """Whether it is certain that a comment covers nothing: every rule that it names has spoken."""
    silent = [(rule.name, rule.code, rule.family) for rule in unheard]
    silent += [(one.rule, "", "") for one in missed]
    return not any(names(word, *one) for word in ignore.names for one in silent)
