"""Every rule does what its page says, and every page says enough."""

from __future__ import annotations

import pytest

from shardlint import rules
from shardlint.findings import Rule
from shardlint.testing import Case, faults_of, findings_of, is_one_token_away, read_page

RULES = rules.all_rules()
CASES = [
    pytest.param(rule, case, id=f"{rule.name}: {case.name}")
    for rule in RULES
    for case in read_page(rules.page(rule), rule.name)
]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_the_rule_does_what_its_page_says(rule: Rule, case: Case) -> None:
    assert list(faults_of(case, findings_of(rule, case))) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_page_has_flagged_and_fine_cases_and_a_nearest_miss(rule: Rule) -> None:
    cases = read_page(rules.page(rule), rule.name)
    flagged = [case for case in cases if case.kind == "flagged"]
    misses = [case for case in cases if case.kind == "nearest miss"]
    assert {case.kind for case in cases} == {"flagged", "fine", "nearest miss"}
    for miss in misses:
        assert any(is_one_token_away(miss, case) for case in flagged), f"{miss.title} is near no flagged case"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_page_begins_with_the_rule_and_says_what_why_and_when_not(rule: Rule) -> None:
    lines = rules.page(rule).splitlines()
    assert lines[0] == f"# {rule.name}"
    assert lines[2].startswith(f"`{rule.code}`, {rule.severity}, family `{rule.family}`")
    headings = [line[3:] for line in lines if line.startswith("## ")]
    assert headings == ["What happens", "Why", "When it is quiet", "Cases"]
