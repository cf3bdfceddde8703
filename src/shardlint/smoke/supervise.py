"""The parent's side of a run: start one process, listen to its ranks, end them all. Imports no torch."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shardlint.smoke.plan import Plan
from shardlint.smoke.progress import Progress
from shardlint.smoke.records import parse
from shardlint.smoke.result import SmokeResult

DEADLINE_SECONDS = 60.0
STALL_SECONDS = 10.0
"""Without a word from any rank for so long, the run hangs: a check takes milliseconds."""

GRACE_SECONDS = 0.5
"""How long the others may still speak when a rank has died: the first to be reaped need not be the first cause."""
GOODBYE_SECONDS = 2.0

AT_DEADLINE = "when the deadline was over"
WHEN_GONE = "when the process that had started it was gone"

OUTPUT = "output"
CHUNK_BYTES = 65536

# The package's own folder goes last on the path: it only matters where the parent's path was made by hand.
START = """
import sys
sys.path.append(sys.argv[1])
from shardlint.smoke.child import main
main(int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
"""


def run(plan: Plan, *, deadline_seconds: float = DEADLINE_SECONDS, stall_seconds: float = STALL_SECONDS) -> SmokeResult:
    """Try a plan on this host: on its GPUs by NCCL where each rank has one, else on the CPU by gloo.

    Ends within the deadline (and the moment that it takes to end processes), leaves no process behind, and names the
    rank that died or hangs.
    """
    start = time.monotonic()
    progress = Progress(plan)
    with tempfile.TemporaryDirectory(prefix="shardlint-smoke-") as name:
        folder = Path(name)
        with _child(plan, folder, deadline_seconds) as (_process, reports):
            reason = _listen(reports, progress, start + deadline_seconds, stall_seconds)
        words = {rank: _last_line(folder / f"rank-{rank}") for rank in plan.ranks}
        could_not_run = "" if progress.loaded else progress.cannot or _no_start(folder, reason)
    seconds = time.monotonic() - start
    if could_not_run or progress.loaded is None:
        return SmokeResult(plan, could_not_run=could_not_run, seconds=seconds)
    claims = (*progress.claims, *progress.replica_claims(), *progress.end_claims(reason, words))
    return SmokeResult(plan, claims, "", progress.loaded.backend, progress.loaded.torch, seconds)


@contextmanager
def _child(plan: Plan, folder: Path, deadline_seconds: float) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process that forks the ranks, and the pipe that they report through; afterwards none of them is left."""
    reports, report = os.pipe()
    package = Path(__file__).resolve().parents[2]
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            # -P: a folder called torch where the user stands is not the library; -W: its warnings are not the user's
            [sys.executable, "-P", "-W", "ignore", "-c", START, package, str(report), folder, str(deadline_seconds)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(report,),
            start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    os.close(report)
    try:
        _say(process, json.dumps(plan.to_json()).encode() + b"\n")
        yield process, reports
    finally:
        os.close(reports)
        _end(process)


def _say(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once; that is seen when its reports end
        process.stdin.write(line)
        process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closing standard input asks the child to end its ranks; whatever does not follow is killed."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GOODBYE_SECONDS)
    if process.returncode != 0:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listen(reports: int, progress: Progress, deadline: float, stall_seconds: float) -> str:
    """Take records until there are no more, or until the run must be ended; why no more were awaited."""
    rest = b""
    limit, reason = deadline, AT_DEADLINE
    while select.select([reports], [], [], max(0.0, limit - time.monotonic()))[0]:
        data = os.read(reports, CHUNK_BYTES)
        if not data:
            return WHEN_GONE
        *lines, rest = (rest + data).split(b"\n")
        was_broken = progress.broken
        for line in lines:
            progress.take(parse(line))
        now = time.monotonic()
        if progress.broken:
            limit = limit if was_broken else now + GRACE_SECONDS
        elif progress.under_way and now + stall_seconds < deadline:
            limit, reason = now + stall_seconds, f"when nothing had moved for {stall_seconds:g} s"
        else:
            limit, reason = deadline, AT_DEADLINE
    return reason


def _no_start(folder: Path, reason: str) -> str:
    """Why not even torch was imported."""
    if reason == AT_DEADLINE:
        return f"torch was still being imported {reason}"
    return f"the process that imports torch ended: {_last_line(folder / OUTPUT) or 'it says nothing'}"


def _last_line(path: Path) -> str:
    """The last words that a process wrote to its standard error; empty where it wrote none."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
