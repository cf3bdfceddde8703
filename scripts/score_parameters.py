"""Compare the parameters of the rows of every model with a count of its checkpoint, and explain what differs.

Usage: python scripts/score_parameters.py PARAMS_JSONL CONFIGS_DIR

Each line of PARAMS_JSONL holds `model_id`, `config_file` (below CONFIGS_DIR) and `meta.total`: the elements that the
model's own class makes, tied weights once; where `published.relation` is "exact", `published.count` counts too.  A
difference of more than 0.1 % is explained by what the rows themselves say: what they have that the checkpoint has not,
towers that the count left out, an output head that is tied.  Exit code 1 where one stays unexplained.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from shardlint.architectures import Rows, Unlike, rows_of
from shardlint.facts.geometry import read
from shardlint.layout.parts import parameters_of

TOLERANCE = 0.001


class Score(NamedTuple):
    """One model: `why` explains the difference, "" where there is none worth it, None where nothing explains it."""

    model: str
    ours: int
    theirs: int
    why: str | None


def main(params: Path, configs: Path) -> int:
    """Print each difference, each model without rows, and how many agree."""
    with params.open(encoding="utf-8") as file:
        lines = [line for line in map(json.loads, file) if line.get("meta")]
    scores: list[Score] = []
    undescribed = 0
    for line in lines:
        rows = _rows(line, configs)
        if isinstance(rows, Rows):
            scores += [_score(line["model_id"], rows, theirs) for theirs in _counts(line)]
        else:
            undescribed += 1
            print(f"no rows      {line['model_id']}: {rows}")
    for score in scores:
        if score.why != "":
            print(f"{'UNEXPLAINED' if score.why is None else 'explained  '}  {_in_words(score)}")
    unexplained = sum(score.why is None for score in scores)
    differing = sum(score.why != "" for score in scores)
    print(
        f"{len(scores)} counts of {len(lines) - undescribed} described models: {len(scores) - differing} within "
        f"{TOLERANCE:.1%}, {differing - unexplained} explained, {unexplained} not; {undescribed} models without rows"
    )
    return 1 if unexplained else 0


def _rows(line: Mapping[str, Any], configs: Path) -> Rows | str:
    config = json.loads((configs / line["config_file"]).read_text(encoding="utf-8"))
    rows = rows_of(read(config, line["model_id"]))
    return rows if isinstance(rows, Rows) else rows.reason


def _counts(line: Mapping[str, Any]) -> Iterator[int]:
    yield line["meta"]["total"]
    published = line.get("published") or {}
    if published.get("relation") == "exact" and published["count"] != line["meta"]["total"]:
        yield published["count"]


def _score(model: str, rows: Rows, theirs: int) -> Score:
    ours = sum(map(parameters_of, rows.weights))
    return Score(model, ours, theirs, _explained(rows, ours, theirs))


def _explained(rows: Rows, ours: int, theirs: int) -> str | None:
    """The fewest reasons whose parameters make up for the difference."""
    reasons = tuple(_reasons(rows))
    for number in range(len(reasons) + 1):
        for chosen in combinations(reasons, number):
            left = ours - theirs - sum(reason.parameters for reason in chosen)
            if abs(left) <= TOLERANCE * theirs:
                return "; ".join(f"{reason.why} ({reason.parameters:+,})" for reason in chosen)
    return None


def _reasons(rows: Rows) -> Iterator[Unlike]:
    yield from rows.unlike_checkpoint
    towers = sum(parameters_of(row) for row in rows.weights if row.tower != "none")
    if towers:
        yield Unlike(towers, "the count leaves the towers out")
    words = [row for row in rows.weights if row.outs[0].piece == "vocabulary"]
    if len(words) == 1:
        yield Unlike(-parameters_of(words[0]), "the count has an output head that is tied to the embedding")


def _in_words(score: Score) -> str:
    difference = score.ours - score.theirs
    share = f"{difference / score.theirs:+.2%}"
    return f"{score.model}: {score.ours:,} and {score.theirs:,}, {difference:+,} ({share}) {score.why or ''}".rstrip()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
