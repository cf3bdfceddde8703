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
        if members := [rule.name for rule in rules if word == rule.family or rule.code[:3] == word.upper()]:
            raise CannotRun(f"{word} is the name of a family or group, whose rules are: {', '.join(members)}")
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
    """All rules with their severity, family and effect, then the families, apart those that no rule has yet."""
    width = max(len(rule.name) for rule in rules)
    lines = []
    for group, meaning in GROUPS.items():
        members = [rule for rule in rules if not rule.plugin and rule.code.startswith(group)]
        if members:
            lines += [f"{group}  {meaning}", *(_line(rule, width) for rule in members), ""]
    if brought := [rule for rule in rules if rule.plugin]:
        lines += ["of plugins", *(_line(rule, width) for rule in brought), ""]
    judged = {rule.family for rule in rules}
    lines += ["families", *(_family(name) for name in FAMILIES if name in judged)]
    if empty := [name for name in FAMILIES if name not in judged and name != "plugin"]:
        lines += ["", "families without a rule yet: nothing checks these", *map(_family, empty)]
    return "\n".join(lines)


def _line(rule: Rule, width: int) -> str:
    facts = f"{rule.severity}, {rule.family}" + (f", {rule.effect}" if rule.effect else "")
    return f"  {rule.code}  {rule.name:<{width}}  {title(rule)} ({facts})"


def _family(name: str) -> str:
    return f"  {name:<18} {FAMILIES[name]}"


def title(rule: Rule) -> str:
    """What is wrong, in one line: the first of the rule's page that is no heading, without the facts before it."""
    lines = (line.strip() for line in page(rule).splitlines())
    first = next((line for line in lines if line and not line.startswith(("#", "---", "|"))), rule.name)
    return first.split("`: ", 1)[-1] if first.startswith(f"`{rule.code}`, ") else first


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
