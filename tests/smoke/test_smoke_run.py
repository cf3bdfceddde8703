"""Real processes: that a sound layout holds, and that each claim fails when its fault is planted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from smoke_plans import DENSE, plan
from smoke_processes import none_left_within, processes_of

from shardlint.smoke import SmokeResult, Trial, run
from shardlint.smoke.plan import Deviation

pytestmark = pytest.mark.usefixtures("room")

TENSOR = ("split-mlp", "attention", "embedding", "output-head", "repetition")

WALL_SECONDS = 15.0
"""What the example of TP 2 x PP 2 may take on two cores."""


def _messages(result: SmokeResult, claim: str) -> dict[int, str]:
    """What each rank has against a claim."""
    return {judged.rank: judged.message for judged in result.claims if judged.name == claim and not judged.ok}


def test_tp2_pp2_holds_in_time_and_the_parent_imports_no_torch() -> None:
    start = time.monotonic()
    result = run(plan(DENSE, tp=2, pp=2))
    assert time.monotonic() - start < WALL_SECONDS
    assert (result.exit_code, result.backend, result.failed, result.not_reached) == (0, "gloo", (), ())
    assert result.proven == ("membership", *TENSOR, "stage-hand-off", "all-layers", "ranks")
    assert "torch" not in sys.modules


def test_one_rank_alone_runs_the_whole_model() -> None:
    result = run(plan(DENSE))
    assert (result.exit_code, result.proven) == (0, ("membership", "all-layers", "ranks"))


def test_a_shard_is_named_with_the_rank_that_added_it() -> None:
    faults = (Deviation("shards", (1,), (0,)), Deviation("shards", (3,), (1, 1)), Deviation("shards", (5,), ()))
    result = run(plan(DENSE, *faults, tp=2, dp=3))
    assert (result.exit_code, result.failed) == (1, ("split-mlp", "all-layers", "replicas"))
    messages = _messages(result, "split-mlp")
    assert sorted(messages) == list(result.plan.ranks)
    assert messages[0].endswith(": rank 1 added the shard of rank 0")
    assert messages[2].endswith(": rank 3 added the shard of rank 3 twice")
    assert messages[4].endswith(": rank 5 added nothing")


def test_a_stage_tells_what_is_wrong_with_what_it_receives() -> None:
    lost_residual = Deviation("residual", (0,), False)
    dropped_layer = Deviation("layers", (2,), (0, 2))
    wrong_order = (Deviation("layers", (4,), (3, 6)), Deviation("layers", (5,), (0, 3)))
    not_added = Deviation("residual-added", (6,), False)
    result = run(plan(DENSE, lost_residual, dropped_layer, *wrong_order, not_added, pp=2, dp=4))
    assert (result.exit_code, result.failed) == (1, ("stage-hand-off", "all-layers", "replicas"))
    messages = _messages(result, "stage-hand-off")
    assert messages[1].startswith("not what the first 3 layers give; residual: ")
    assert "hidden_states" not in messages[1]
    assert messages[3] == "these are the tensors after 2 layers, and 3 are planned up to here"
    assert messages[5].startswith("not what the first 3 layers give; hidden_states: ")
    assert "hidden_states: " in messages[7]
    assert "residual: " in messages[7]
    assert sorted(_messages(result, "all-layers")) == [1, 3, 5, 7]


def test_swapped_tensor_and_pipeline_groups_are_named_and_nothing_is_computed_in_them() -> None:
    everybody, tensor, stages = (0, 1, 2, 3), ((0, 1), (2, 3)), ((0, 2), (1, 3))
    swapped = (Deviation("groups-tp", everybody, stages), Deviation("groups-pp", everybody, tensor))
    result = run(plan(DENSE, *swapped, tp=2, pp=2))
    assert (result.exit_code, result.failed) == (1, ("membership",))
    assert result.not_reached == (*TENSOR, "stage-hand-off", "all-layers")
    met = {(claim.kind, claim.rank): claim.message for claim in result.claims if not claim.ok}
    assert len(met) == 8
    assert met["tp", 0] == "the plan has [0, 1], and [0, 2] met"
    assert met["tp", 3] == "the plan has [2, 3], and [1, 3] met"
    assert met["pp", 2] == "the plan has [0, 2], and [2, 3] met"


def test_a_killed_rank_is_named_at_once() -> None:
    result = run(plan(DENSE, Deviation("end", (3,), ("split-mlp", "SIGKILL")), tp=2, pp=2))
    assert (result.exit_code, result.failed) == (1, ("ranks",))
    (message,) = _messages(result, "ranks").values()
    assert message.startswith("rank 3 (process ")
    assert message.endswith(") was ended by SIGKILL in split-mlp")
    assert result.seconds < WALL_SECONDS


def test_a_stuck_rank_is_named_with_those_who_wait_for_it() -> None:
    stuck = Deviation("end", (1,), ("split-mlp", "SIGSTOP"))
    result = run(plan(DENSE, stuck, tp=2), Trial(stall_seconds=1.0))
    assert (result.exit_code, result.failed) == (1, ("ranks",))
    (message,) = _messages(result, "ranks").values()
    assert message.startswith("rank 1 (process ")
    assert message.endswith(
        ") was frozen by a signal in split-mlp, in no collective, while ranks [0] waited for it, when nothing had moved for 1 s"
    )


def test_an_exception_is_quoted_and_what_follows_from_it_is_not() -> None:
    result = run(plan(DENSE, Deviation("end", (0,), ("membership", "")), tp=2))
    assert (result.exit_code, result.failed) == (1, ("ranks",))
    (message,) = _messages(result, "ranks").values()
    assert message.endswith(" raised in membership: RuntimeError: planted by a test")


def test_more_ranks_than_a_host_without_gpus_bears_are_not_started() -> None:
    result = run(plan(DENSE, dp=33))
    assert result.exit_code == 2
    assert result.could_not_run == "33 ranks are planned; without a GPU for each, at most 32 are tried"


def _instead_of_torch(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_without_torch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead_of_torch('raise ModuleNotFoundError("No module named torch", name="torch")', tmp_path, monkeypatch)
    result = run(plan(DENSE, tp=2))
    assert result.exit_code == 2
    assert result.could_not_run == "torch is not installed: it comes with the extra `smoke` of shardlint"


def test_a_torch_that_does_not_load_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead_of_torch('raise OSError("libcudart.so.13: cannot open shared object file")', tmp_path, monkeypatch)
    result = run(plan(DENSE, tp=2))
    assert result.could_not_run == "torch cannot be imported: libcudart.so.13: cannot open shared object file"


def test_a_torch_that_takes_the_process_down_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead_of_torch('import os; os.write(2, b"Illegal instruction"); os.abort()', tmp_path, monkeypatch)
    result = run(plan(DENSE, tp=2))
    assert result.could_not_run == "the process that imports torch ended: Illegal instruction"


def test_the_deadline_holds_while_torch_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead_of_torch("import time; time.sleep(600)", tmp_path, monkeypatch)
    start = time.monotonic()
    result = run(plan(DENSE, tp=2), Trial(deadline_seconds=0.5))
    assert result.could_not_run == "torch was still being imported when the deadline was over"
    assert time.monotonic() - start < 5


def test_no_rank_outlives_a_parent_that_is_killed(room: Path) -> None:
    code = f"""
import sys, tempfile
tempfile.tempdir = {str(room)!r}
sys.path.insert(0, {str(Path(__file__).parent)!r})
from smoke_plans import DENSE, plan
from shardlint.smoke import run
from shardlint.smoke.plan import Deviation
run(plan(DENSE, Deviation("end", (0, 1), ("split-mlp", "SIGSTOP")), tp=2))
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        started = _ranks_started(room, 2)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert started
    assert none_left_within(room, 5)
    for folder in room.iterdir():  # nobody was left to remove it
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _ranks_started(room: Path, ranks: int) -> bool:
    """Whether the ranks come to be, beside the parent and the process that forks them."""
    end = time.monotonic() + WALL_SECONDS
    while time.monotonic() < end:
        if len(processes_of(room)) >= ranks + 2:
            return True
        time.sleep(0.02)
    return False
