"""Print, as Markdown, every condition of a catalogue with the rule that says it, or why files cannot decide it.

Usage: python scripts/catalogue_table.py CATALOGUE > docs/conditions.md

CATALOGUE is a Markdown file whose tables have an id (`A1`) in their first column and a name in the second. The answers
are in `catalogue_answers.tsv` beside this script: an id, the rules with commas between, the reason where there is none.
Ends with exit code 1 where a condition has no answer, an answer no condition, or a rule is none.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from shardlint.rules import all_rules

ANSWERS = Path(__file__).with_name("catalogue_answers.tsv")
ROW = re.compile(r"^\| (?P<id>[A-Z]\d+) \| (?P<name>[^|]+?) \|", re.MULTILINE)
CHAPTER = re.compile(r"^## (?P<letter>[A-Z])\. (?P<title>.+)$", re.MULTILINE)
NOT_YET = "not yet"

HEAD = """\
# Conditions

Made by `python scripts/catalogue_table.py CATALOGUE > docs/conditions.md`.

Every condition and consequence of vLLM 0.33.0 that was found in its source, and the rule that says it. A rule may say
of a condition only what files decide. Where there is no rule, the reason is given; "not yet" means that files could
decide it.
"""


class Answer(NamedTuple):
    """What is said of one condition."""

    rules: tuple[str, ...]
    reason: str


def answers(text: str) -> dict[str, Answer]:
    """The answers by id."""
    rows = [line.split("\t") for line in text.splitlines() if line]
    return {row[0]: Answer(tuple(filter(None, row[1].split(", "))), row[2]) for row in rows}


def faults(conditions: dict[str, str], given: dict[str, Answer]) -> list[str]:
    """What keeps the table from being whole."""
    known = {rule.name for rule in all_rules()}
    found = [f"{one} has no answer" for one in conditions if one not in given]
    found += [f"{one} is no condition" for one in given if one not in conditions]
    found += [
        f"{one} names the rule {name}" for one, answer in given.items() for name in answer.rules if name not in known
    ]
    return found + [f"{one} has neither rule nor reason" for one, answer in given.items() if not any(answer)]


def table(catalogue: str, given: dict[str, Answer]) -> list[str]:
    """The lines of the page."""
    titles = {match["letter"]: match["title"] for match in CHAPTER.finditer(catalogue)}
    codes = {rule.name: rule.code for rule in all_rules()}
    lines = [HEAD]
    counted: Counter[str] = Counter()
    for letter, title in titles.items():
        rows = [match for match in ROW.finditer(catalogue) if match["id"][0] == letter]
        if not rows:
            continue
        lines += [f"## {title}", "", "| id | condition | said by |", "| --- | --- | --- |"]
        for match in rows:
            answer = given[match["id"]]
            by = ", ".join(f"{codes[name]} {name}" for name in answer.rules)
            counted["by a rule" if by else NOT_YET if answer.reason.startswith(NOT_YET) else "not to be decided"] += 1
            lines.append(f"| {match['id']} | {match['name']} | {by or answer.reason} |")
        lines.append("")
    total = ", ".join(f"{number} {what}" for what, number in counted.most_common())
    return [*lines, f"{counted.total()} conditions: {total}."]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    catalogue = Path(sys.argv[1]).read_text(encoding="utf-8")
    given = answers(ANSWERS.read_text(encoding="utf-8"))
    wrong = faults({match["id"]: match["name"] for match in ROW.finditer(catalogue)}, given)
    if wrong:
        sys.exit("\n".join(wrong))
    print("\n".join(table(catalogue, given)))


if __name__ == "__main__":
    main()
