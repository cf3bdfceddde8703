"""Asking the rules: which run, what they miss, what they say, and where it is put."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from shardlint.check.facts import DeploymentFacts, parameters
from shardlint.deployment import Deployment, NotTold
from shardlint.findings import Finding, Located, NotChecked, Problem, Related, Rule, Span, Undecided, Unknown
from shardlint.findings.records import NamedTuple


class RuleFailed(Exception):
    """A rule raised: the run cannot vouch for its result."""

    def __init__(self, rule: Rule, cause: BaseException) -> None:
        owner = f" of the plugin {rule.plugin}" if rule.plugin else ""
        super().__init__(f"the rule {rule.name}{owner} failed: {type(cause).__name__}: {cause}")
        self.rule = rule.name


class Facts(Protocol):
    def answer(self, name: str) -> Any: ...


class Missing(NamedTuple):
    """A fact that a rule needs is not there: unknown, or (`unknown` None) simply not written."""

    name: str
    unknown: Unknown | None

    @property
    def said(self) -> Sequence[Undecided]:
        """What that leaves undecided."""
        return () if self.unknown is None else (Undecided(self.name, self.unknown),)


def is_about(rule: Rule, facts: DeploymentFacts) -> bool:
    """Whether a rule judges deployments of this engine."""
    return rule.subject == "deployment" and (not rule.engines or facts.engine.name in rule.engines)


NOTHING: frozenset[str] = frozenset()


def said_of(
    deployment: Deployment, facts: DeploymentFacts, wanted: Sequence[Rule], withheld: frozenset[str] = NOTHING
) -> Iterator[Finding | NotChecked]:
    """All that the wanted rules say of one deployment, each finding as often as it is said.

    Of the facts that a rule can do without, those that are `withheld` count as not there.
    """
    if not facts.engine.judged:
        reason = f"layouts of {facts.engine.label} are read and not judged"
        yield NotChecked(deployment.name, "*", "engine", reason, "", deployment.at.path)
        return
    if facts.engine.unjudged:
        yield NotChecked(deployment.name, "*", "engine", facts.engine.unjudged, "", deployment.at.path)
    place = fallback_place(deployment)
    for rule in wanted:
        if is_about(rule, facts):
            for said in _said(rule, facts, withheld):
                yield _placed(rule, said, place, deployment.name)


def judge(rule: Rule, facts: Facts, fallback: Span, deployment: str = "") -> Iterator[Finding | NotChecked]:
    """The findings of one rule on one deployment, or why it did not run."""
    return (_placed(rule, said, fallback, deployment) for said in _said(rule, facts))


def _placed(rule: Rule, said: Problem | Undecided, fallback: Span, deployment: str) -> Finding | NotChecked:
    if isinstance(said, Problem):
        return _finding(rule, said, fallback, deployment)
    unknown = said.unknown
    return NotChecked(deployment, rule.name, said.missing, unknown.reason, unknown.settle_by, fallback.path)


def _said(rule: Rule, facts: Facts, withheld: frozenset[str] = NOTHING) -> Sequence[Problem | Undecided]:
    try:
        if rule.applies is not None:
            wanted = _arguments(rule.applies, facts, withheld)
            if isinstance(wanted, Missing):
                return wanted.said
            if not rule.applies(*wanted):
                return ()
        arguments = _arguments(rule.judge, facts, withheld)
        if isinstance(arguments, Missing):
            return arguments.said
        return [_checked(said) for said in rule.judge(*arguments)]
    except NotTold as missing:
        return (Undecided(missing.name, missing.unknown),)
    except (Exception, SystemExit) as cause:  # sys.exit() in a plugin's rule is no verdict
        raise RuleFailed(rule, cause) from cause


def _checked(said: Any) -> Problem | Undecided:
    if not isinstance(said, (Problem, Undecided)):
        raise TypeError(f"{said!r:.80} is no Problem")
    return said


def _arguments(function: Callable[..., Any], facts: Facts, withheld: frozenset[str]) -> list[Any] | Missing:
    """What a function of a rule asks for, in the order of its parameters, up to the first that it cannot do without."""
    needed, others = parameters(function)
    answer = facts.answer
    arguments: list[Any] = []
    for name in needed:
        value = answer(name)
        if value is None or isinstance(value, Unknown):
            return Missing(name, value)
        arguments.append(value)
    for name, default in others:
        value = None if name in withheld else answer(name)
        arguments.append(default if value is None or isinstance(value, Unknown) else value)
    return arguments


def fallback_place(deployment: Deployment) -> Span:
    """Where a finding stands whose value was written nowhere: the model, else the first word of the command."""
    model = deployment.model
    return model.span if isinstance(model, Located) and model.span is not None else deployment.at


def _span(place: Located[Any] | Span | None) -> Span | None:
    return place.span if isinstance(place, Located) else place


def _finding(rule: Rule, problem: Problem, fallback: Span, deployment: str) -> Finding:
    related = ((_span(place), message) for place, message in problem.related)
    return Finding(
        code=rule.code,
        rule=rule.name,
        family=rule.family,
        severity=problem.severity or rule.severity,
        effect=problem.effect or rule.effect,
        certainty=problem.certainty,
        span=_span(problem.at) or fallback,
        message=problem.message,
        sum=problem.sum,
        help=problem.help,
        url=rule.url,
        related=tuple(Related(span, message) for span, message in related if span is not None),
        deployment=deployment,
    )
