"""A run that breaks at any moment is told: the records of a real one, cut off after each of them."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from smoke_plans import DENSE, plan

from shardlint.smoke import SmokeResult, Trial, run
from shardlint.smoke.comparison import changes
from shardlint.smoke.exchanges import Exchange, Phase
from shardlint.smoke.judge import Judge
from shardlint.smoke.progress import Progress
from shardlint.smoke.records import Ended, Ready, Record, Timed
from shardlint.smoke.report import first_cause, json_data, text

PLAN = plan(DENSE, tp=2, dp=2)
PHASES: tuple[tuple[Phase, int], ...] = (("decode", 1), ("prefill", 2048))
TRIAL = Trial(
    exchanges=tuple(
        Exchange(operation, "tp", "layer", phase, tokens, 6, 8192 * tokens)
        for operation in ("all-reduce", "all-gather")
        for phase, tokens in PHASES
    )
)
SCHEMA = Draft202012Validator(json.loads(files("shardlint.report").joinpath("schemas/smoke-1.json").read_text()))


@pytest.fixture
def records(room: Path, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """What the ranks of a run said."""
    heard: list[Record] = []
    take = Progress.take

    def noted(progress: Progress, record: Record) -> None:
        heard.append(record)
        take(progress, record)

    monkeypatch.setattr(Progress, "take", noted)
    assert run(PLAN, TRIAL).exit_code == 0
    monkeypatch.undo()
    return heard


def _of(records: list[Record], folder: Path) -> SmokeResult:
    """What becomes of a run that has heard no more than that."""
    with Judge(PLAN, TRIAL, folder) as judge:
        judge.ready[0] = next(record for record in records if isinstance(record, Ready))
        judge._choose("gloo")
        for record in records:
            judge.progress.take(record)
        return judge._composed("at the deadline of 60 s", (), judge._hosts())


def test_a_run_that_ends_at_any_record_has_a_report(records: list[Record], tmp_path: Path) -> None:
    whole = json.loads(json.dumps(json_data(_of(records, tmp_path))))
    assert (whole["exit_code"], whole["not_timed"]) == (0, [])
    told = set()
    for heard in range(1 + records.index(next(each for each in records if isinstance(each, Ready))), len(records)):
        for last in ([], [Ended(3, -9)]):
            result = _of([*records[:heard], *last], tmp_path)
            assert result.exit_code == 1
            assert f"FAIL  ranks, world {'[2,3]' if last else ''}" in (said := text(result, before=whole))
            assert f": {first_cause(result)}\n" in said
            written = json.dumps(json_data(result))
            if written not in told:
                SCHEMA.validate(json.loads(written))
                told.add(written)
            assert list(changes(json.loads(written), whole))
    assert len(told) > len(PLAN.ranks) * len(TRIAL.exchanges)


def test_what_a_step_spends_is_told_only_where_all_of_it_was_timed(records: list[Record], tmp_path: Path) -> None:
    timed = [number for number, record in enumerate(records) if isinstance(record, Timed)]
    told = []
    for heard in (timed[0] + 1, *timed[1:], len(records)):
        result = _of(records[:heard], tmp_path)._replace(level="full")
        data, lines = json_data(result), text(result).splitlines()
        assert all(timing["group"] in map(list, PLAN.groups[timing["kind"]]) for timing in data["timings"])
        for phase, _tokens in PHASES:
            missing = sum(each["phase"] == phase for each in data["not_timed"])
            of_phase = [line.strip() for line in lines if line.startswith(f"      {phase}: ")]
            if missing and of_phase:
                assert of_phase[0].startswith(f"{phase}: {missing} of 2 exchanges not timed in all groups: no sum")
            told += [(missing, bool(of_phase))]
            summed = "spent in these exchanges" if phase == "decode" else "no sum of a step, whose messages are larger"
            assert missing or summed in of_phase[0]
    assert {(2, False), (2, True), (1, True), (0, True)} >= set(told) > {(1, True), (0, True)}
