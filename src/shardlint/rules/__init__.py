"""The rules: every module of this folder whose name begins with a letter is one, and its page lies beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import get_args

from shardlint.findings import FAMILIES, SEVERITIES, Effect, Rule

FOLDER = os.path.dirname(__file__)  # noqa: PTH120 pathlib would cost 5 ms of every run


class BrokenRule(Exception):
    """A rule that does not load, or claims another's code or name: the run cannot vouch for its result."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the rule {name} {reason}")
        self.rule = name


@cache
def all_rules() -> tuple[Rule, ...]:
    """The rules of this folder by code. Raises BrokenRule, with the name, where one cannot be used."""
    return sorted_rules([load(name) for name in names()])


def names() -> tuple[str, ...]:
    """The modules of this folder that hold a rule."""
    files = sorted(os.listdir(FOLDER))  # noqa: PTH208
    return tuple(file[:-3] for file in files if file.endswith(".py") and file[0].isalpha())


def load(module: str, package: str = __name__) -> Rule:
    """The rule of one module. Raises BrokenRule for whatever stops it from loading."""
    try:
        rule = import_module(f"{package}.{module}").RULE
    except Exception as cause:
        raise BrokenRule(module, f"does not load: {type(cause).__name__}: {cause}") from cause
    if not isinstance(rule, Rule):
        raise BrokenRule(module, f"does not load: RULE is a {type(rule).__name__}")
    if rule.name != module.replace("_", "-"):
        raise BrokenRule(module, f"calls itself {rule.name}")
    return rule


def sorted_rules(rules: list[Rule]) -> tuple[Rule, ...]:
    """Rules by code. Raises BrokenRule where two have the same code or name, or one has words that no report knows."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        _check_words(rule)
        for word in (rule.code, rule.name):
            if word in seen:
                raise BrokenRule(rule.name, f"has the code or name {word} of {seen[word].name}")
            seen[word] = rule
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _check_words(rule: Rule) -> None:
    for what, word, known in (
        ("family", rule.family, FAMILIES),
        ("severity", rule.severity, SEVERITIES),
        ("effect", rule.effect, (None, *get_args(Effect))),
    ):
        if word not in known:
            raise BrokenRule(rule.name, f"has the {what} {word!r}, which is none of {', '.join(filter(None, known))}")


def find(word: str, among: Sequence[Rule] | None = None) -> Rule | None:
    """The rule of that code or name, in any case; None where there is none."""
    return next(
        (rule for rule in (all_rules() if among is None else among) if word.lower() in (rule.code.lower(), rule.name)),
        None,
    )


def page(rule: Rule) -> str:
    """The Markdown page of a rule: what it says, why, and its test cases.

    Raises BrokenRule where there is none.
    """
    if rule.page:
        return rule.page
    path = os.path.join(FOLDER, rule.name.replace("-", "_") + ".md")  # noqa: PTH118
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError as cause:
        raise BrokenRule(rule.name, "has no page") from cause
