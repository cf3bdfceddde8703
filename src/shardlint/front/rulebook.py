"""The rules as users name them, and the list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from shardlint.findings import FAMILIES, GROUPS, Rule
from shardlint.front.failures import CannotRun
from shardlint.rules import find, page


def rule_called(word: str, rules: Sequence[Rule]) -> Rule:
    """The rule of that code or name. Raises CannotRun, with the nearest names, where there is none."""
    rule = find(word, rules)
    if rule is None:
        raise CannotRun(f"no rule is called {word}{_nearest(word, rules)}")
    return rule


def known_words(option: str, words: Iterable[str], rules: Sequence[Rule]) -> tuple[str, ...]:
    """The words of a selection, each of which must name something. Raises CannotRun for one that does not."""
    words = tuple(words)
    for word in words:
        if not _names_something(word, rules):
            raise CannotRun(f"{option} {word}: no rule, group or family is called that{_nearest(word, rules)}")
    return words


def _names_something(word: str, rules: Sequence[Rule]) -> bool:
    codes = [*GROUPS, *(rule.code for rule in rules)]
    return word in FAMILIES or find(word, rules) is not None or any(code.startswith(word.upper()) for code in codes)


def _nearest(word: str, rules: Sequence[Rule]) -> str:
    from difflib import get_close_matches

    names = [*FAMILIES, *(name for rule in rules for name in (rule.name, rule.code))]
    near = list(dict.fromkeys(get_close_matches(word, names, n=3)))
    return f"; did you mean {' or '.join(near)}?" if near else "; `shardlint rules` lists them"


def as_text(rules: Sequence[Rule]) -> str:
    """All rules with their severity, family and effect, then the families."""
    width = max(len(rule.name) for rule in rules)
    lines = []
    for group, meaning in GROUPS.items():
        members = [rule for rule in rules if not rule.plugin and rule.code.startswith(group)]
        if members:
            lines += [f"{group}  {meaning}", *(_line(rule, width) for rule in members), ""]
    if brought := [rule for rule in rules if rule.plugin]:
        lines += ["of plugins", *(_line(rule, width) for rule in brought), ""]
    lines.append("families")
    lines += [f"  {name:<18} {meaning}" for name, meaning in FAMILIES.items()]
    return "\n".join(lines)


def _line(rule: Rule, width: int) -> str:
    facts = f"{rule.severity}, {rule.family}" + (f", {rule.effect}" if rule.effect else "")
    return f"  {rule.code}  {rule.name:<{width}}  {title(rule)} ({facts})"


def title(rule: Rule) -> str:
    """The first line of a rule's page that is no heading: what is wrong, in one line."""
    lines = (line.strip() for line in page(rule).splitlines())
    return next((line for line in lines if line and not line.startswith(("#", "---", "|"))), rule.name)


def as_json(rules: Sequence[Rule]) -> str:
    """The same for machines."""
    listed = [
        {
            "code": rule.code,
            "name": rule.name,
            "family": rule.family,
            "severity": rule.severity,
            "effect": rule.effect,
            "title": title(rule),
            "url": rule.url,
        }
        for rule in rules
    ]
    return json.dumps({"schema": 1, "rules": listed, "families": FAMILIES}, indent=2)
