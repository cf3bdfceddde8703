"""Conditions under which an engine refuses a combination of options, as rows of a table that a rule goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from shardlint.deployment import NotTold, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Effect, Located, Problem, Severity, Span, Undecided
from shardlint.findings.records import NamedTuple
from shardlint.rules._words import named

Text = Callable[[Told], str]

OUTCOMES: dict[Effect, str] = {
    "refuses-at-start": "refuses to start",
    "fails-while-loading": "stops while it loads the model",
}


class Condition(NamedTuple):
    """One thing that the engine does not take.

    `at` are the names of the options that have a part in it, the one to change first; the finding stands on the first
    that is written.  `holds` asks in an order in which a later question matters only after the answer to the one
    before.  `since` and `until` are the oldest and the newest release of which it is known.
    """

    at: tuple[str, ...]
    holds: Callable[[Told], bool]
    says: Text
    sum: Text | None = None
    help: Callable[[Told], Iterable[str]] | None = None
    since: str | None = None
    until: str | None = None
    effect: Effect = "refuses-at-start"
    severity: Severity = "error"


def judged(
    conditions: Sequence[Condition], told: Told, engine: Engine, version: Located[Version]
) -> Iterator[Problem | Undecided]:
    """A problem for every condition that holds, and once for each place that leaves some of them undecided."""
    undecided: dict[Span | str, Undecided] = {}
    for condition in conditions:
        if not _is_of(condition, version.value):
            continue
        try:
            if condition.holds(told):
                yield _problem(condition, told, named(engine, version))
        except NotTold as missing:
            undecided.setdefault(missing.unknown.span or missing.name, Undecided(missing.name, missing.unknown))
        except ZeroDivisionError:
            continue  # a size of 0 is the rule impossible-size's
    yield from undecided.values()


def _is_of(condition: Condition, version: Version) -> bool:
    since, until = condition.since, condition.until
    return (since is None or released(since) <= version) and (until is None or version <= released(until))


@cache
def released(text: str) -> Version:
    """A release that a table names."""
    return Version.of(text)


def _problem(condition: Condition, told: Told, engine: str) -> Problem:
    places = [place for name in condition.at if (place := _written(told, name)) is not None]
    return Problem(
        at=places[0] if places else None,
        message=f"{condition.says(told)}: {engine} {OUTCOMES[condition.effect]}",
        sum=condition.sum(told) if condition.sum else None,
        help=tuple(condition.help(told)) if condition.help else (),
        related=tuple((place, place.spelled) for place in places[1:]),
        severity=condition.severity,
        effect=condition.effect,
    )


def _written(told: Told, name: str) -> Located[Any] | None:
    try:
        found = told.located(name)
    except NotTold:
        return None
    return found if found is not None and found.origin == "written" and found.span is not None else None
