"""What a rule says, what a report holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from shardlint.findings.places import Located, Span, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.findings.vocabulary import SEVERITIES, Certainty, Effect, Severity

PAGES = "shardlint/rules/{}.md"

Subject = Literal["deployment", "file", "comments"]
"""What a rule judges: a deployment, the text of a file, or the comments that ignore findings."""


class Related(NamedTuple):
    """Another place that has a part in the fault, and what it says."""

    span: Span
    message: str


class Change(str):
    """Advice that is an edit: its words are `--tensor-parallel-size 4`, and `text` goes where `old` stands at `span`.

    A string, so that whoever reads advice need not know that some of it can be carried out.
    """

    __slots__ = ("old", "span", "text")
    span: Span
    old: str
    text: str

    def __new__(cls, words: str, span: Span, old: str, text: str) -> Change:
        change = super().__new__(cls, words)
        change.span, change.old, change.text = span, old, text
        return change


class Problem(NamedTuple):
    """What a rule yields.

    `at` is the written value that would have to change; where it was written nowhere the check puts the finding
    on the model, else on the first word of the command.  `message` is one sentence with every number in digits,
    `sum` one line of arithmetic, `help` legal values, the nearest first.  `severity`, `effect` and `certainty`
    replace the rule's own where one rule has several outcomes.
    """

    at: Located[Any] | Span | None
    message: str
    sum: str | None = None
    help: tuple[str, ...] = ()
    related: tuple[tuple[Located[Any] | Span | None, str], ...] = ()
    severity: Severity | None = None
    effect: Effect | None = None
    certainty: Certainty = "exact"


class Undecided(NamedTuple):
    """What a rule yields for a part of its question that it could not decide: the fact that it missed, and why."""

    missing: str
    unknown: Unknown


class Rule(NamedTuple):
    """One opinion: its code and name, the user's question it answers, and the function that judges.

    `judge` asks for what it needs by the names of its parameters (see `shardlint.check.facts`); a parameter with
    a default may be missing.  `applies`, where there is one, asks in the same way and decides cheaply whether the
    question arises at all, so that what is beside the point is not reported as unchecked.
    """

    code: str
    name: str
    family: str
    severity: Severity
    effect: Effect | None
    judge: Callable[..., Iterable[Problem | Undecided]]
    applies: Callable[..., bool] | None = None
    subject: Subject = "deployment"
    engines: tuple[str, ...] = ("vllm",)
    """Names of the engines whose deployments it judges; empty for all that are judged."""
    page: str = ""
    """The Markdown text of the page; empty for shardlint's own rules, whose pages lie beside them."""
    plugin: str = ""
    """The plugin that brings it."""

    @property
    def url(self) -> str:
        """The address of the rule's page inside the package; `shardlint explain` prints it."""
        return PAGES.format(self.name.replace("-", "_"))


class Finding(NamedTuple):
    """One fault at one place, as reports print it (the contract's fields)."""

    code: str
    rule: str
    family: str
    severity: Severity
    effect: Effect | None
    certainty: Certainty
    span: Span
    message: str
    sum: str | None = None
    help: tuple[str, ...] = ()
    url: str = ""
    related: tuple[Related, ...] = ()
    deployment: str = ""

    @property
    def path(self) -> str:
        return self.span.path

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def column(self) -> int:
        return self.span.column

    @property
    def end_line(self) -> int:
        return self.span.end_line

    @property
    def end_column(self) -> int:
        return self.span.end_column


class NotChecked(NamedTuple):
    """A rule that did not run on a deployment: what it missed, why, and what would settle it."""

    deployment: str
    rule: str
    missing: str
    reason: str
    settle_by: str
    path: str = ""


class FileNote(NamedTuple):
    """A file that was looked at: the form it was read as, or why nothing was read from it."""

    path: str
    form: str | None
    reason: str | None


class Report(NamedTuple):
    """All that one run found. `deployments` are `shardlint.deployment.Deployment`s."""

    findings: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    files: tuple[FileNote, ...] = ()
    deployments: tuple[Any, ...] = ()

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def reaches(self, severity: Severity) -> bool:
        """Whether a finding is at least that severe."""
        counted = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return any(finding.severity in counted for finding in self.findings)
