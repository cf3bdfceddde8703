"""What every node of a run does: look at its own host, start its ranks, and listen to whoever speaks."""

from __future__ import annotations

import hashlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from shardlint.smoke.conversation import BEAT_SECONDS, Line, Message
from shardlint.smoke.doors import Call, Calls, Door
from shardlint.smoke.engine_groups import NotCompared, engine_groups
from shardlint.smoke.exchanges import Mode, Timing
from shardlint.smoke.job import Job
from shardlint.smoke.links import link_observations
from shardlint.smoke.observations import Observation
from shardlint.smoke.own_process import refusal
from shardlint.smoke.plan import Plan
from shardlint.smoke.precheck import Needs, precheck
from shardlint.smoke.progress import START_UP, Progress
from shardlint.smoke.ranks_process import RanksProcess
from shardlint.smoke.reach import addresses
from shardlint.smoke.records import Doing, Ended, Ready, Record, Timed
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.surroundings import Surroundings
from shardlint.smoke.trial import Host, Trial, hosts_of_ranks

AT_DEADLINE = "when the deadline was over"

Tell = Callable[[str], None]
"""Takes a line about what is going on."""


def silent(_line: str) -> None:
    """Nobody is watching."""


class CannotTry(Exception):
    """Why nothing was tried."""


class Node:
    """What all nodes do: judge their own host, start their ranks, and listen to whoever speaks."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path, tell: Tell = silent) -> None:
        self.plan = plan
        self.backend = ""
        """Empty until it is chosen."""
        self.tell = tell
        self._told = {*START_UP, "end"}
        self.trial = trial
        self.seat = trial.seat
        self.folder = folder
        self.progress = Progress(plan)
        self.ready: dict[int, Ready] = {}
        self.words: dict[int, str] = {}
        self.process: RanksProcess | None = None
        self.host = trial.around or Surroundings(socket.gethostname())
        self.not_compared = ""
        """Why the groups could not be held against vLLM's, where that was asked for."""
        self.own = tuple(self._look_around())
        self._open = ExitStack()
        self.calls = Calls()
        self._open.callback(self.calls.close)
        self._limit = time.monotonic() + trial.deadline_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._open.close()

    def outcome(self) -> SmokeResult:
        """Run to the end. However it ends, there is a result."""
        try:
            return self._outcome()
        except CannotTry as reason:
            return SmokeResult(self.plan, could_not_run=str(reason))

    def _outcome(self) -> SmokeResult:
        raise NotImplementedError

    def _look_around(self) -> Iterator[Observation]:
        if self.trial.against_vllm and self.seat.node == 0:
            try:
                yield from engine_groups(self.plan)
            except NotCompared as reason:
                self.not_compared = str(reason)
        if self.trial.around is not None:
            here = 1 if self.trial.share_gpu else len(self.seat.ranks(len(self.plan.ranks))) + self.seat.first_gpu
            yield from precheck(Needs(len(self.plan.ranks), here, self.seat.hosts), self.trial.around)

    @property
    def _ranks_wanted(self) -> bool:
        if self.trial.level == "pre" or self.not_compared:
            return False
        return not any(seen.severity == "error" for seen in self.own)

    def _start_process(self, listening: int = -1) -> None:
        """torch is imported while the nodes meet."""
        try:
            self.process = self._open.enter_context(RanksProcess(self.folder, listening))
        except OSError as failure:
            raise CannotTry(refusal("the process that imports torch", failure)) from failure

    def _choose(self, backend: str) -> None:
        """What is tried depends on the devices."""
        self.backend = backend
        self.plan = self.progress.plan = self.plan.on(backend)

    def _job(self, backend: str, store: str, listening: int = -1) -> Job:
        trial = self.trial
        return Job(
            self.plan,
            self.seat,
            backend,
            store,
            listening,
            trial.deadline_seconds,
            trial.exchanges,
            trial.repetitions,
        )

    def _lines(self) -> list[Line]:
        return []

    def _sockets(self) -> list[socket.socket]:
        return []

    def _listen(self, limit: float) -> bool:
        """Hear what there is to hear, for a moment at most; False where the limit is over."""
        now = time.monotonic()
        for line in self._lines():
            if line.introduced:
                line.beat(now)
        speakers: list[Any] = [*self._lines(), *self._sockets(), *self.calls.speakers]
        if self.process is not None and not self.process.gone:
            speakers.append(self.process)
        moment = limit - now if not self._lines() and self.seat.nodes == 1 else min(limit - now, BEAT_SECONDS / 2)
        for speaker in _who_speaks(speakers, moment):
            if speaker is self.process:
                for record in self.process.listen():
                    self._own_record(record)
            elif isinstance(speaker, Line):
                for message in speaker.listen():
                    self._message(speaker, message)
            elif isinstance(speaker, (Door, Call)):
                speaker.hear()
            else:
                self._accept(speaker)
        self.calls.go_on()
        return time.monotonic() < limit

    def _open_doors(self, line: Line) -> None:
        """Listen where the ranks of this node will; `line` shows its address towards the other side."""
        where = addresses(self.seat, self.host, line.own_address)
        try:
            self.calls.open(self.seat.node, where)
        except OSError as failure:
            why = f"node {self.seat.node} cannot listen on {' and '.join(where)}: {failure.strerror or failure}"
            raise CannotTry(why) from failure

    def _own_record(self, record: Record) -> None:
        if isinstance(record, Ready):
            self.ready[self.seat.node] = record
        self.progress.take(record)
        if isinstance(record, Doing) and record.check not in self._told:
            self._told.add(record.check)
            self.tell(f"trying {record.check}")
        if isinstance(record, Ended) and record.code and self.process is not None:
            self.words[record.rank] = self.process.last_words(record.rank)

    def _message(self, line: Line, message: Message) -> None:
        raise NotImplementedError

    def _accept(self, listening: socket.socket) -> None:
        raise NotImplementedError

    def _why_no_start(self) -> str:
        """Why not even torch was imported here; empty while that is still to come."""
        if self.progress.cannot:
            return self.progress.cannot
        if self.process is not None and self.process.gone:
            return f"the process that imports torch ended: {self.process.last_words() or 'it says nothing'}"
        return ""

    @property
    def _silence(self) -> str:
        return f"was not heard of for {self.trial.silent_seconds:g} s: frozen, or its link is cut"

    def _lose(self, node: int, how: str) -> None:
        """A node is gone with all of its ranks."""
        for rank in self.seat.ranks(len(self.plan.ranks), node):
            if rank not in self.progress.ended:
                self.progress.lost.setdefault(rank, how)

    def _composed(self, reason: str, observations: tuple[Observation, ...], hosts: tuple[Host, ...]) -> SmokeResult:
        progress = self.progress
        claims = (*progress.claims, *progress.replica_claims(), *progress.end_claims(reason, self.words))
        backend = progress.loaded.backend if progress.loaded else self.backend
        torch = progress.loaded.torch if progress.loaded else self.ready[self.seat.node].torch
        timings = tuple(_timings(progress, self.trial))
        sent = tuple(each for each in self.trial.exchanges if self.trial.repetitions and each.kind in self.plan.groups)
        host_of = hosts_of_ranks(self.seat, len(self.plan.ranks), hosts) if hosts else {}
        slow = link_observations(timings, backend == "nccl", host_of)
        seen = (*observations, *progress.shared_gpus(), *slow)
        return SmokeResult(
            self.plan, claims, "", backend, torch, observations=seen, hosts=hosts, timings=timings, exchanges=sent
        )


def _who_speaks(speakers: Sequence[Any], seconds: float) -> list[Any]:
    """Those of whom something is to be heard. Not by `select`, which takes no descriptor from 1024 on."""
    by_descriptor = {speaker.fileno(): speaker for speaker in speakers}
    listening = select.poll()
    for descriptor in by_descriptor:
        listening.register(descriptor, select.POLLIN)
    return [by_descriptor[descriptor] for descriptor, _event in listening.poll(max(0.0, seconds) * 1000)]


def fingerprint(plan: Plan, trial: Trial) -> str:
    """What nodes compare to know that they run the same plan, and time the same of it."""
    planned = {key: value for key, value in plan.to_json().items() if key != "deviations"}
    return hashlib.sha256(json.dumps([planned, trial.exchanges], sort_keys=True).encode()).hexdigest()[:16]


def _timings(progress: Progress, trial: Trial) -> Iterator[Timing]:
    """A group is as slow as its slowest member, which is not known before all of them have spoken."""
    members: dict[tuple[int, tuple[int, ...], Mode], list[Timed]] = {}
    for timed in progress.timed:
        group = progress.plan.group_of(trial.exchanges[timed.exchange].kind, timed.rank)
        mode: Mode = "alone" if timed.mode == "alone" else "together"
        members.setdefault((timed.exchange, group, mode), []).append(timed)
    for (number, group, mode), found in members.items():
        if {timed.rank for timed in found} == set(group):
            slowest = max(found, key=lambda timed: timed.median_us)
            yield Timing(trial.exchanges[number], group, mode, slowest.bytes, slowest.median_us, slowest.p99_us)
