"""The table of conditions: whole, or it says what is missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

CATALOGUE = """\
# Start-up checks

## A. Heads
| # | name | condition |
|---|---|---|
| A1 | heads-div-tp | H % TP != 0 |
| A2 | slow | a line in the log |
"""


@pytest.fixture
def script() -> ModuleType:
    path = Path(__file__).parent.parent / "scripts" / "catalogue_table.py"
    spec = importlib.util.spec_from_file_location("catalogue_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["catalogue_table"] = module
    spec.loader.exec_module(module)
    return module


def test_every_condition_has_its_rule_or_a_reason(script: ModuleType) -> None:
    lines = script.table(CATALOGUE, script.answers("A1\tquery-heads\t\nA2\t\ta line in the log\n"))
    assert "| A1 | heads-div-tp | SL101 query-heads |" in lines
    assert "| A2 | slow | a line in the log |" in lines
    assert lines[-1] == "2 conditions: 1 by a rule, 1 not to be decided."


def test_what_is_missing_or_wrong_is_said(script: ModuleType) -> None:
    conditions = {"A1": "heads-div-tp", "A2": "slow"}
    assert script.faults(conditions, script.answers("A1\tno-such-rule\t\nA3\t\twhy\n")) == [
        "A2 has no answer",
        "A3 is no condition",
        "A1 names the rule no-such-rule",
    ]


def test_the_answers_name_rules_that_there_are(script: ModuleType) -> None:
    given = script.answers(script.ANSWERS.read_text(encoding="utf-8"))
    assert script.faults(dict.fromkeys(given, ""), given) == []
