"""How soon a fault is named: counted from the moment at which the rank says that it begins the check of the fault."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from smoke_plans import DENSE, plan

from shardlint.smoke import Trial, run
from shardlint.smoke.job import Job, Seat
from shardlint.smoke.plan import Deviation
from shardlint.smoke.progress import Progress
from shardlint.smoke.ranks_process import RanksProcess
from shardlint.smoke.records import Cannot, Doing, Record, Uses, parse
from shardlint.smoke.report import first_cause

STALL_SECONDS = 1.5


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, str], float]:
    """When the parent heard of each rank that it begins a check."""
    heard: dict[tuple[int, str], float] = {}
    take = Progress.take

    def take_and_note(progress: Progress, record: Record) -> None:
        if isinstance(record, Doing) and not record.operation:
            heard.setdefault((record.rank, record.check), time.monotonic())
        take(progress, record)

    monkeypatch.setattr(Progress, "take", take_and_note)
    return heard


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("check", "fault", "within_seconds", "words"),
    [
        ("split-mlp", "SIGKILL", 1.0, ") was ended by SIGKILL in split-mlp"),
        ("split-mlp", "", 1.0, ") raised in split-mlp: RuntimeError: planted by a test"),
        ("split-mlp", "sleep", STALL_SECONDS + 1, ") was in split-mlp, in no collective, while ranks [0"),
        ("split-mlp", "SIGSTOP", STALL_SECONDS + 1, ") was frozen by a signal in split-mlp, in no collective, while"),
        # before it meets the others, so that it never arrives; and after that, before the groups are made
        ("start-up", "sleep", STALL_SECONDS + 1, ") was in start-up, in no collective, while ranks [0] waited for it"),
        ("start-up", "SIGSTOP", STALL_SECONDS + 1, ") was frozen by a signal in start-up, in no collective, while"),
        ("groups", "sleep", STALL_SECONDS + 1, ") was in groups, in no collective, while ranks [0] waited for it"),
        ("groups", "SIGSTOP", STALL_SECONDS + 1, ") was frozen by a signal in groups, in no collective, while ranks ["),
    ],
)
def test_a_fault_is_named_in_time_and_no_process_is_left(
    check: str, fault: str, within_seconds: float, words: str, begun: dict[tuple[int, str], float]
) -> None:
    result = run(plan(DENSE, Deviation("end", (1,), (check, fault)), tp=2), Trial(stall_seconds=STALL_SECONDS))
    took = time.monotonic() - begun[1, check]
    cause = first_cause(result)
    assert (result.exit_code, result.kind) == (1, "rank-lost")
    assert cause is not None
    assert cause.startswith("rank 1 (process ")
    assert words in cause
    assert took < within_seconds


@pytest.mark.usefixtures("room")
def test_where_the_process_that_starts_ranks_is_frozen_no_rank_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    start = RanksProcess.start

    def start_and_freeze(process: RanksProcess, job: Job) -> None:
        start(process, job)
        os.kill(process._process.pid, signal.SIGSTOP)

    monkeypatch.setattr(RanksProcess, "start", start_and_freeze)
    why = run(plan(DENSE, tp=2), Trial(stall_seconds=STALL_SECONDS)).could_not_run
    assert why.startswith("the process that starts the ranks (process ")
    assert why.endswith(f") was frozen by a signal when nothing had moved for {STALL_SECONDS:g} s")


REFUSING = """
import errno, os, sys
from shardlint.smoke import child
fork, left = os.fork, [int(sys.argv[2])]
def refuse():
    if not left[0]:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    left[0] -= 1
    return fork()
os.fork = refuse
child.main(1, sys.argv[1])
"""


@pytest.mark.parametrize(("forks", "what"), [(0, "the process that counts GPUs"), (2, "process 2 of 2")])
def test_a_process_that_the_host_refuses_to_start_is_told(forks: int, what: str, tmp_path: Path) -> None:
    job = Job(plan(DENSE, tp=2), Seat(), "gloo", f"file://{tmp_path}/store", -1, 5.0)
    command = [sys.executable, "-c", REFUSING, str(tmp_path), str(forks)]
    done = subprocess.run(command, input=json.dumps(job.to_json()) + "\n", capture_output=True, text=True, check=True)
    cannot = [record for record in map(parse, done.stdout.encode().splitlines()) if isinstance(record, Cannot)]
    assert cannot == [Cannot(f"this host refused to start {what}: Resource temporarily unavailable")]


def test_two_ranks_of_one_gpu_are_named() -> None:
    progress = Progress(plan(DENSE, tp=4))
    for rank, gpu in enumerate(("GPU-a", "GPU-b", "GPU-a", "GPU-c")):
        progress.take(Uses(rank, gpu))
    (seen,) = progress.shared_gpus()
    assert (seen.name, seen.severity) == ("same-gpu", "error")
    assert seen.message == 'ranks [0, 2] are all on GPU-a: NCCL stops with "Duplicate GPU detected"'
