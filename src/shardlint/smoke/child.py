"""The process that imports torch once and forks the ranks of its node: `main(report, folder)`.

The job comes on standard input, which stays open for as long as somebody wants the run; when it closes, the ranks are
ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shardlint.smoke.job import MOST_RANKS_ON_CPU, Job
from shardlint.smoke.own_process import refusal
from shardlint.smoke.plan import Plan
from shardlint.smoke.records import (
    Cannot,
    Doing,
    Ended,
    Loaded,
    Raised,
    Ready,
    Record,
    Started,
    Stopped,
    in_a_line,
    write,
)
from shardlint.smoke.transports import SETTINGS

if TYPE_CHECKING:
    from types import ModuleType

LOOPBACK_NAMES = ("lo", "lo0")  # Linux and macOS
POLL_SECONDS = 0.02
NO_TORCH = "torch is not installed: it comes with the extra `smoke` of shardlint"


def main(report: int, folder: str) -> None:
    """Import torch, wait for the job, run its ranks; all that happens goes as records into the descriptor `report`."""
    worker = _load(report)
    if worker is None:
        return
    try:
        gpus = _gpus(worker)
    except OSError as failure:
        write(report, Cannot(refusal("the process that counts GPUs", failure)))
        return
    write(report, Ready(worker.VERSION, gpus, worker.nccl_version()))
    line = sys.stdin.buffer.readline()
    if not line:
        return
    job = Job.from_json(json.loads(line))
    ranks = len(job.plan.ranks)
    if job.backend != "nccl" and ranks > MOST_RANKS_ON_CPU:
        reason = f"{ranks} ranks are planned; without a GPU for each, at most {MOST_RANKS_ON_CPU} are tried"
        write(report, Cannot(reason))
        return
    write(report, Loaded(worker.VERSION, job.backend))
    if job.seat.hosts == 1:
        _stay_on_this_host()
    if job.backend == "nccl" and not os.environ.keys() & SETTINGS.keys():  # whoever wants a log of his own has it
        os.environ.update({**SETTINGS, "NCCL_DEBUG_FILE": f"{folder}/{SETTINGS['NCCL_DEBUG_FILE']}"})
    processes: dict[int, int] = {}
    for rank in job.seat.ranks(ranks):
        try:
            process = os.fork()
        except OSError as failure:
            mine = job.seat.ranks(ranks)
            write(report, Cannot(refusal(f"process {len(processes) + 1} of {len(mine)}", failure)))
            _kill(processes)
            break
        if process == 0:
            _be_rank(rank, job, worker, report, folder)
        processes[process] = rank
        write(report, Started(rank, process))
    store = worker.store_of(job) if job.listening >= 0 else None  # its thread must not be there when ranks are forked
    _see_them_out(processes, report)
    if store is not None:  # the ranks of other nodes may still ask it
        sys.stdin.buffer.read()


def _load(report: int) -> ModuleType | None:
    """The worker, and torch with it."""
    try:
        from shardlint.smoke import ranks as worker
    except ModuleNotFoundError as failure:
        known = failure.name == "torch"
        write(report, Cannot(NO_TORCH if known else f"torch cannot be imported: {failure}"))
        return None
    except (ImportError, OSError) as failure:  # a library of its own is missing or does not fit this machine
        write(report, Cannot(f"torch cannot be imported: {failure}"))
        return None
    return worker


def _gpus(worker: ModuleType) -> int:
    """GPUs of this host, counted by a process of its own, because CUDA does not survive a fork."""
    process = os.fork()
    if process == 0:
        os._exit(worker.gpus())
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _stay_on_this_host() -> None:
    """One host: gloo stays on the loopback interface, whatever the host's name resolves to."""
    import socket

    names = {name for _index, name in socket.if_nameindex()}
    for name in names.intersection(LOOPBACK_NAMES):
        os.environ["GLOO_SOCKET_IFNAME"] = name


def _be_rank(rank: int, job: Job, worker: ModuleType, report: int, folder: str) -> None:
    """The life of a forked process; it does not return."""
    code = 1
    try:
        _die_with_parent()
        with Path(folder, f"rank-{rank}").open("wb") as errors:
            os.dup2(errors.fileno(), 2)
        worker.work(rank, job, _speaker(rank, job.plan, report))
        code = 0
    except BaseException as failure:  # whatever it is, the parent is to hear of it before the process is gone
        write(report, Raised(rank, f"{type(failure).__name__}: {in_a_line(failure)}"))
    finally:
        os._exit(code)


def _speaker(rank: int, plan: Plan, report: int) -> Callable[[Record], None]:
    """How a rank reports; one that a test has planted to end dies, stops, sleeps or raises as its
    check begins."""
    check, signal_name = plan.deviation("end", rank, ("", ""))

    def say(record: Record) -> None:
        write(report, record)
        if isinstance(record, Doing) and record.check == check and not record.operation:
            if not signal_name:
                raise RuntimeError("planted by a test")
            if signal_name == "sleep":
                time.sleep(3600)
            os.kill(os.getpid(), getattr(signal, signal_name))

    return say


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, should that be killed; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _kill(processes: Iterable[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def _see_them_out(processes: dict[int, int], report: int) -> None:
    """Reap the ranks as they end; end them when nobody wants the run any more."""
    wanted = True
    while processes:
        process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if process and os.WIFSTOPPED(status):
            write(report, Stopped(processes[process], os.WSTOPSIG(status)))
        elif process:
            write(report, Ended(processes.pop(process), os.waitstatus_to_exitcode(status)))
        elif wanted and select.select([0], [], [], POLL_SECONDS)[0]:
            wanted = False
            _kill(processes)
        elif not wanted:
            time.sleep(POLL_SECONDS)
