"""How rules get what they ask for, and what happens when it is not there."""

from collections.abc import Iterator
from typing import Any

import pytest

from shardlint.check.judging import RuleFailed, is_about, judge
from shardlint.findings import Finding, Located, NotChecked, Problem, Rule, Span, Undecided, Unknown

HERE = Span("a.yaml", 3, 5, 3, 9)
FALLBACK = Span("a.yaml", 1, 1, 1, 2)


class Facts:
    def __init__(self, **values: Any) -> None:
        self.values = values
        self.asked: list[str] = []

    def answer(self, name: str) -> Any:
        self.asked.append(name)
        return self.values[name]


def rule(judge_function: Any, applies: Any = None) -> Rule:
    return Rule("SL999", "made-up", "plugin", "warning", "slow", judge_function, applies)


def odd(tensor_parallel_size: Located[int]) -> Iterator[Problem]:
    if tensor_parallel_size.value % 2:
        yield Problem(tensor_parallel_size, f"{tensor_parallel_size.value} is odd")


def said(a_rule: Rule, **values: Any) -> list[Finding | NotChecked]:
    return list(judge(a_rule, Facts(**values), FALLBACK, "Deployment/x"))


def test_a_finding_stands_where_the_value_was_written() -> None:
    (finding,) = said(rule(odd), tensor_parallel_size=Located(3, HERE))
    assert isinstance(finding, Finding)
    assert (finding.span, finding.message, finding.severity, finding.effect) == (HERE, "3 is odd", "warning", "slow")
    assert said(rule(odd), tensor_parallel_size=Located(4, HERE)) == []


def test_a_value_that_was_written_nowhere_puts_the_finding_on_the_fallback() -> None:
    (finding,) = said(rule(odd), tensor_parallel_size=Located(3, None, origin="default"))
    assert isinstance(finding, Finding)
    assert finding.span == FALLBACK


def test_an_unknown_need_is_reported_with_what_settles_it() -> None:
    (missed,) = said(rule(odd), tensor_parallel_size=Unknown("templated", settle_by="helm template"))
    assert missed == NotChecked(
        "Deployment/x", "made-up", "tensor_parallel_size", "templated", "helm template", "a.yaml"
    )


def test_a_part_of_a_question_that_is_not_decided_is_reported_beside_the_rest() -> None:
    def partly(tensor_parallel_size: Located[int]) -> Iterator[Problem | Undecided]:
        yield Problem(tensor_parallel_size, "too many")
        yield Undecided("num_experts", Unknown("no model", settle_by="--models"))

    finding, missed = said(rule(partly), tensor_parallel_size=Located(3, HERE))
    assert isinstance(finding, Finding)
    assert missed == NotChecked("Deployment/x", "made-up", "num_experts", "no model", "--models", "a.yaml")


def test_a_need_that_was_simply_not_written_asks_no_question() -> None:
    assert said(rule(odd), tensor_parallel_size=None) == []


def test_a_parameter_with_a_default_may_be_missing() -> None:
    def lenient(tensor_parallel_size: Located[int], gpu: Located[str] | None = None) -> Iterator[Problem]:
        yield Problem(None, f"{tensor_parallel_size.value} on {gpu.value if gpu else 'some card'}")

    for gpu in (Unknown("not named"), None):
        (finding,) = said(rule(lenient), tensor_parallel_size=Located(1), gpu=gpu)
        assert isinstance(finding, Finding)
        assert finding.message == "1 on some card"


def test_applies_decides_before_the_expensive_facts_are_asked() -> None:
    facts = Facts(pipeline_parallel_size=Located(1), geometry=Unknown("no model"))

    def applies(pipeline_parallel_size: Located[int]) -> bool:
        return pipeline_parallel_size.value > 1

    def expensive(geometry: Any) -> Iterator[Problem]:
        yield Problem(None, str(geometry))

    assert list(judge(rule(expensive, applies), facts, FALLBACK)) == []
    assert facts.asked == ["pipeline_parallel_size"]


@pytest.mark.parametrize("answer", [5, ["text"], None])
def test_a_rule_that_says_no_problems_is_named(answer: Any) -> None:
    def broken(tensor_parallel_size: Located[int]) -> Any:
        return answer

    with pytest.raises(RuleFailed, match="the rule made-up failed: TypeError"):
        said(rule(broken), tensor_parallel_size=Located(1))


def test_a_rule_that_leaves_the_process_is_named() -> None:
    def leaving(tensor_parallel_size: Located[int]) -> Any:
        raise SystemExit(0)

    with pytest.raises(RuleFailed, match="the rule made-up failed: SystemExit: 0"):
        said(rule(leaving), tensor_parallel_size=Located(1))


def test_a_rule_that_raises_is_named() -> None:
    def broken(tensor_parallel_size: Located[int]) -> Iterator[Problem]:
        yield Problem(None, str(1 // 0))

    with pytest.raises(RuleFailed, match="the rule made-up failed: ZeroDivisionError"):
        said(rule(broken), tensor_parallel_size=Located(1))


def test_related_places_without_a_span_are_left_out() -> None:
    def two(tensor_parallel_size: Located[int]) -> Iterator[Problem]:
        yield Problem(None, "x", related=((tensor_parallel_size, "here"), (Located(1), "nowhere")))

    (finding,) = said(rule(two), tensor_parallel_size=Located(1, HERE))
    assert isinstance(finding, Finding)
    assert [(place.span, place.message) for place in finding.related] == [(HERE, "here")]


def test_a_rule_judges_the_engines_that_it_names() -> None:
    class Deployments(Facts):
        def __init__(self, engine: str) -> None:
            super().__init__()
            self.engine = type("Engine", (), {"name": engine})

    own = Rule("SL999", "made-up", "plugin", "warning", "slow", odd)
    for engine, engines, expected in (("vllm", ("vllm",), True), ("acme", ("vllm",), False), ("acme", (), True)):
        assert is_about(own._replace(engines=engines), Deployments(engine)) is expected  # type: ignore[arg-type]
