"""Rules are found by folder, and one that cannot be used ends the run with its name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardlint import rules
from shardlint.findings import FAMILIES, GROUPS, Rule
from shardlint.rules import BrokenRule


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `strangers` to put rules into."""
    folder = tmp_path / "strangers"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "strangers"]:
        del sys.modules[name]


def made(code: str, name: str) -> Rule:
    return Rule(code, name, "plugin", "note", None, lambda: ())


def test_every_module_of_the_folder_is_a_rule_with_its_own_code_and_name() -> None:
    found = rules.all_rules()
    assert len(found) == len(rules.names()) >= 16
    assert [rule.code for rule in found] == sorted({rule.code for rule in found})
    assert {rule.name.replace("-", "_") for rule in found} == set(rules.names())


def test_codes_belong_to_a_group_and_families_are_known() -> None:
    for rule in rules.all_rules():
        assert re.fullmatch(r"SL\d{3}", rule.code)
        assert rule.code[:3] in GROUPS
        assert rule.family in FAMILIES


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    pages = {path.stem for path in Path(rules.FOLDER).glob("*.md")}
    assert pages == set(rules.names())
    for rule in rules.all_rules():
        assert rules.page(rule).startswith(f"# {rule.name}\n")


def test_a_rule_is_found_by_code_and_by_name_in_any_case() -> None:
    assert rules.find("sl101") is rules.find("query-heads") is rules.find("Query-Heads") is not None
    assert rules.find("query") is None


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nothing_of_that_name", "does not load: ModuleNotFoundError"),
        ("RULE = 1 / 0", "does not load: ZeroDivisionError"),
        ("rule = None", "does not load: AttributeError"),
        ("RULE = 'text'", "does not load: RULE is a str"),
        (
            "from shardlint.findings import Rule\nRULE = Rule('SL999', 'other', 'plugin', 'note', None, lambda: ())",
            "calls itself other",
        ),
    ],
)
def test_a_rule_that_cannot_be_used_is_named(strangers: Path, source: str, why: str) -> None:
    (strangers / "odd_one.py").write_text(source)
    with pytest.raises(BrokenRule, match=f"the rule odd_one {why}") as raised:
        rules.load("odd_one", "strangers")
    assert raised.value.rule == "odd_one"


def test_two_rules_with_one_code_or_name_are_refused() -> None:
    first = made("SL901", "first")
    with pytest.raises(BrokenRule, match="the rule second has the code or name SL901 of first"):
        rules.sorted_rules([first, made("SL901", "second")])
    with pytest.raises(BrokenRule, match="the rule first has the code or name first of first"):
        rules.sorted_rules([first, made("SL902", "first")])


def test_a_rule_without_a_page_is_named() -> None:
    with pytest.raises(BrokenRule, match="the rule first has no page"):
        rules.page(made("SL901", "first"))


@pytest.mark.parametrize("change", [{"family": "nobodys"}, {"severity": "fatal"}, {"effect": "explodes"}])
def test_a_rule_with_words_that_no_report_knows_is_named(change: dict[str, str]) -> None:
    rule = made("XX001", "odd")._replace(**change)  # type: ignore[arg-type]
    with pytest.raises(BrokenRule, match=f"the rule odd has the {next(iter(change))} '{next(iter(change.values()))}'"):
        rules.sorted_rules([rule])
