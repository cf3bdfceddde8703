"""What another release of vLLM would say of the same files: the findings that appear, and those that go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from shardlint.check.run import check
from shardlint.check.settings import Settings
from shardlint.deployment import Deployment
from shardlint.engines.versions import Version
from shardlint.findings import Finding, Located, Report
from shardlint.findings.records import NamedTuple
from shardlint.text import Library, Source

ENGINE = "vllm"

Key = tuple[object, ...]


class Upgrade(NamedTuple):
    """What an upgrade changes for one deployment."""

    deployment: Deployment
    since: str | None
    """The release that it is judged by now; None where nobody says it, and it is judged by the newest known."""
    appear: tuple[Finding, ...]
    go: tuple[Finding, ...]


def changes(
    sources: Iterable[Source], library: Library, settings: Settings, release: str
) -> tuple[tuple[Upgrade, ...], Report]:
    """Every deployment of vLLM with what `release` changes about it, and the report by that release."""
    files = tuple(sources)
    now = check(files, library, settings)
    then = check(files, library, settings.upgraded(release))
    return tuple(_changes(now, then, settings)), then


def _changes(now: Report, then: Report, settings: Settings) -> Iterator[Upgrade]:
    names = Counter(deployment.name for deployment in now.deployments)
    for deployment in now.deployments:
        if deployment.engine == ENGINE:
            is_alone = names[deployment.name] == 1
            before, after = _of(deployment, now, is_alone), _of(deployment, then, is_alone)
            yield Upgrade(deployment, _release(deployment, settings), _less(after, before), _less(before, after))


def _of(deployment: Deployment, report: Report, is_alone: bool) -> tuple[Finding, ...]:
    """The findings on a deployment; those in another file only where no other deployment has its name."""
    own = (finding for finding in report.findings if finding.deployment == deployment.name)
    return tuple(finding for finding in own if is_alone or finding.path == deployment.at.path)


def _release(deployment: Deployment, settings: Settings) -> str | None:
    written = deployment.engine_version
    if isinstance(written, Located) and Version.parse(written.value):
        return written.value
    return settings.vllm


def _less(some: Sequence[Finding], others: Sequence[Finding]) -> tuple[Finding, ...]:
    known = {_key(finding) for finding in others}
    return tuple(finding for finding in some if _key(finding) not in known)


_RELEASE = re.compile(r"\bvLLM \d[\w.]*")


def _key(finding: Finding) -> Key:
    """What makes a finding the same under both releases: all but their names in its text."""
    return finding.code, finding.severity, finding.span, _RELEASE.sub("vLLM", finding.message)
