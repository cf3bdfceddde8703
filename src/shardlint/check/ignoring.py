"""`# shardlint: ignore[NAME] reason`: which findings it covers, and which of them covered nothing."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.findings import Finding, Ignore


def covers(ignore: Ignore, finding: Finding) -> bool:
    """Whether a comment stands for a finding: on a line of it, and naming its rule, code or family."""
    on_line = finding.path == ignore.span.path and finding.line <= ignore.line <= finding.end_line
    return on_line and any(name in (finding.rule, finding.code, finding.family) for name in ignore.names)


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
