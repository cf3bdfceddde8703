"""Runs one rule on the cases of its page, along the road that every manifest takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardlint.check.command import OneModel
from shardlint.check.facts import DeploymentFacts, FileFacts
from shardlint.check.judging import fallback_place, is_about, judge
from shardlint.check.reading import read_file
from shardlint.check.run import check
from shardlint.check.settings import Settings
from shardlint.facts import hardware_spec
from shardlint.findings import Finding, Rule, Unknown
from shardlint.testing.pages import Case, Expectation, PageError, read_page
from shardlint.text import Library, Source


class NoModel(Library):
    """A library that has nothing."""

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"the page gives no config.json for {model_id}")

    def sibling(self, path: str) -> Unknown:
        return Unknown(f"the page gives no file {path}")


def run_page(rule: Rule, page: str) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """Every case of a page's text with what is wrong with it: nothing, where the rule does as the page says."""
    for case in read_page(page, rule.name):
        yield case, tuple(faults_of(case, findings_of(rule, case)))


def findings_of(rule: Rule, case: Case) -> tuple[Finding, ...]:
    """What the rule alone says about a case. Raises PageError for hardware that is none."""
    library: Library = NoModel() if case.config is None else OneModel(case.config, case.side_files)
    settings = Settings(vllm=case.vllm, hardware=_hardware(case))
    source = Source(case.path, case.text)
    if rule.subject == "comments":  # which comments cover nothing is known when all rules have spoken
        return tuple(finding for finding in check([source], library, settings).findings if finding.rule == rule.name)
    reading = read_file(source, library, settings)
    said = list(judge(rule, FileFacts(reading), source.span(0, 0))) if rule.subject == "file" else []
    for deployment in reading.deployments:
        facts = DeploymentFacts(deployment, library, settings, reading.deployments)
        if facts.engine.judged and is_about(rule, facts):
            said += judge(rule, facts, fallback_place(deployment), deployment.name)
    return tuple(item for item in said if isinstance(item, Finding))


def _hardware(case: Case) -> Any:
    if case.hardware is None:
        return None
    parsed = hardware_spec.parse(case.hardware)
    if isinstance(parsed, str):
        raise PageError(f"{case.title}: {parsed}")
    return parsed


def faults_of(case: Case, findings: Sequence[Finding]) -> Iterator[str]:
    """How the findings differ from what the case says, in words."""
    left = list(findings)
    for expected in case.expected:
        found = next((finding for finding in left if text_under(case, finding) == expected.on), None)
        if found is None:
            yield f"no finding stands on {expected.on!r}, but on {[text_under(case, one) for one in left]}"
            continue
        left.remove(found)
        yield from _differences(expected, found)
    for finding in left:
        yield f"not expected: {finding.severity} on {text_under(case, finding)!r}: {finding.message}"


def _differences(expected: Expectation, found: Finding) -> Iterator[str]:
    for what, wanted, actual in (
        ("severity", expected.severity, found.severity),
        ("effect", expected.effect, found.effect),
    ):
        if wanted != actual:
            yield f"the {what} is {actual}, not {wanted}"
    for what, text in expected.asked:
        if what == "sum" and found.sum != text:
            yield f"the sum is {found.sum!r}, not {text!r}"
        elif what == "says" and text not in found.message:
            yield f"the message does not hold {text!r}: {found.message}"
        elif what == "help" and not any(text in line for line in found.help):
            yield f"no help holds {text!r}: {found.help}"


def text_under(case: Case, finding: Finding) -> str:
    """The text of the manifest that a finding stands on."""
    lines = case.text.splitlines(keepends=True)[finding.line - 1 : finding.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: finding.end_column - 1]
    lines[0] = lines[0][finding.column - 1 :]
    return "".join(lines)
