"""The parent's side of a run on one host, or of one node of several. Imports no torch.

Node 0 judges: it hears the records of all nodes, and tells the others its verdict, so that all of them name the same
cause. A node that loses node 0 says so by itself.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import select
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from shardlint.smoke.crossing import crossings
from shardlint.smoke.engine_groups import engine_groups
from shardlint.smoke.exchanges import Mode, Timing
from shardlint.smoke.job import Job
from shardlint.smoke.links import link_observations
from shardlint.smoke.nodes import BEAT_SECONDS, Line, Message, call, listen_on
from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan
from shardlint.smoke.precheck import Needs, differences, precheck
from shardlint.smoke.progress import Progress
from shardlint.smoke.ranks_process import RanksProcess, ranks_process
from shardlint.smoke.records import Ended, Ready, Record, parse
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.surroundings import Surroundings
from shardlint.smoke.trial import DEADLINE_SECONDS, STALL_SECONDS, Host, Trial

__all__ = ["DEADLINE_SECONDS", "STALL_SECONDS", "run"]

GRACE_SECONDS = 0.5
"""How long the others may still speak when a rank has died: the first to be reaped need not be the first cause."""

AT_DEADLINE = "when the deadline was over"
WHEN_GONE = "when the process that had started it was gone"


def run(plan: Plan, trial: Trial = Trial()) -> SmokeResult:  # noqa: B008 it cannot change
    """Try a plan: on the GPUs by NCCL where each rank has one, else on the CPU by gloo.

    Ends within the deadline (and the moment that it takes to end processes), leaves no process behind, and names the
    rank or node that died, hangs or is lost.
    """
    start = time.monotonic()
    side = Judge if trial.seat.node == 0 else Guest
    with tempfile.TemporaryDirectory(prefix="shardlint-smoke-") as folder, side(plan, trial, Path(folder)) as node:
        result = node.outcome()
    return result._replace(seconds=time.monotonic() - start, level=trial.level)


class _Cannot(Exception):
    """Why nothing was tried."""


class _Node:
    """What all nodes do: judge their own host, start their ranks, and listen to whoever speaks."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path) -> None:
        self.plan = plan
        self.trial = trial
        self.seat = trial.seat
        self.folder = folder
        self.progress = Progress(plan)
        self.ready: dict[int, Ready] = {}
        self.words: dict[int, str] = {}
        self.process: RanksProcess | None = None
        self.own = tuple(self._look_around())
        self._open = ExitStack()
        self._limit = time.monotonic() + trial.deadline_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._open.close()

    def outcome(self) -> SmokeResult:
        """Run to the end. However it ends, there is a result."""
        try:
            return self._outcome()
        except _Cannot as reason:
            return SmokeResult(self.plan, could_not_run=str(reason))

    def _outcome(self) -> SmokeResult:
        raise NotImplementedError

    def _look_around(self) -> Iterator[Observation]:
        if self.trial.against_vllm and self.seat.node == 0:
            yield from engine_groups(self.plan)
        if self.trial.around is not None:
            here = len(self.seat.ranks(len(self.plan.ranks))) + self.seat.first_gpu
            yield from precheck(Needs(len(self.plan.ranks), here, self.seat.hosts), self.trial.around)

    @property
    def _ranks_wanted(self) -> bool:
        return self.trial.level != "pre" and not any(seen.severity == "error" for seen in self.own)

    def _start_process(self, listening: int = -1) -> None:
        """torch is imported while the nodes meet."""
        self.process = self._open.enter_context(ranks_process(self.folder, listening))

    def _choose(self, backend: str) -> None:
        """What is tried depends on the devices."""
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
            backend == "nccl" or trial.level == "full",
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
        speakers: list[Any] = [*self._lines(), *self._sockets()]
        if self.process is not None and not self.process.gone:
            speakers.append(self.process)
        moment = limit - now if not self._lines() and self.seat.nodes == 1 else min(limit - now, BEAT_SECONDS / 2)
        for speaker in select.select(speakers, [], [], max(0.0, moment))[0]:
            if speaker is self.process:
                for record in self.process.listen():
                    self._own_record(record)
            elif isinstance(speaker, Line):
                for message in speaker.listen():
                    self._message(speaker, message)
            else:
                self._accept(speaker)
        return time.monotonic() < limit

    def _own_record(self, record: Record) -> None:
        if isinstance(record, Ready):
            self.ready[self.seat.node] = record
        self.progress.take(record)
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
        backend, torch = (progress.loaded.backend, progress.loaded.torch) if progress.loaded else ("", "")
        timings = tuple(_timings(progress, self.trial))
        seen = (*observations, *progress.shared_gpus(), *link_observations(timings, backend == "nccl"))
        return SmokeResult(self.plan, claims, "", backend, torch, observations=seen, hosts=hosts, timings=timings)


class Judge(_Node):
    """Node 0, or the only one."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path) -> None:
        super().__init__(plan, trial, folder)
        self.lines: dict[int, Line] = {}
        self.strangers: list[Line] = []
        self.around = {0: trial.around or Surroundings(socket.gethostname())}
        self.seen: list[Observation] = list(self.own)
        self._door: list[socket.socket] = []
        self._moved = time.monotonic()

    def _outcome(self) -> SmokeResult:
        listening = self._listen_on(self.seat.port) if self.seat.nodes > 1 else None
        store = self._listen_on(0) if self.seat.nodes > 1 else None
        if listening is not None:
            self._door.append(listening)
        if self._ranks_wanted:
            self._start_process(store.fileno() if store else -1)
        try:
            result = self._judged(store)
        except _Cannot as reason:
            result = SmokeResult(self.plan, could_not_run=str(reason), hosts=self._hosts())
        for line in self.lines.values():
            line.say({"say": "verdict", "result": result.to_json()})
        return result

    def _judged(self, store: socket.socket | None) -> SmokeResult:
        self._meet()
        hosts = self._hosts()
        self.seen += differences(list(self.around.values()))
        if self.seat.nodes > 1 or self.trial.planned_nodes:
            self.seen += crossings(self.plan, self.seat, hosts, self.trial.planned_nodes)
        if self.trial.level == "pre" or any(seen.severity == "error" for seen in self.own_and_others()):
            return SmokeResult(self.plan, observations=tuple(self.seen), hosts=hosts)
        self._await_torch()
        self.seen += self.versions()
        return self._composed(self._tried(store), tuple(self.seen), hosts)

    def own_and_others(self) -> list[Observation]:
        """What keeps the ranks from being started at all: of hosts, and not of the places of ranks."""
        return [seen for seen in self.seen if seen.name != "crosses-nodes"]

    def _meet(self) -> None:
        """Wait for all nodes."""
        wanted = set(range(1, self.seat.nodes))
        while wanted - self.lines.keys():
            if not self._listen(self._limit):
                missing = sorted(wanted - self.lines.keys())
                of = "; ".join(f"node {node} (ranks {_span(self._ranks(node))})" for node in missing)
                here = len(self.lines) + 1
                seconds = f"{self.trial.deadline_seconds:g} s"
                raise _Cannot(f"{here} of {self.seat.nodes} nodes came within {seconds}; missing: {of}")

    def _await_torch(self) -> None:
        while len(self.ready) < self.seat.nodes:
            if why := self._why_no_start():
                raise _Cannot(why)
            for node, line in self.lines.items():
                if not line.open:
                    raise _Cannot(f"node {node} left before its ranks were started")
            if not self._listen(self._limit):
                raise _Cannot(f"torch was still being imported {AT_DEADLINE}")

    def versions(self) -> Iterator[Observation]:
        """Nodes with other releases of torch or NCCL may not understand each other."""
        for what in ("torch", "nccl"):
            found = {node: getattr(ready, what) for node, ready in sorted(self.ready.items())}
            if len(set(found.values())) > 1:
                said = ", ".join(f"{version or 'none'} on {self._name(node)}" for node, version in found.items())
                yield Observation("versions", "warning", "", f"{what} is {said}", "one image on all nodes")

    def _tried(self, store: socket.socket | None) -> str:
        """Have the ranks started, and hear them to the end; why no more was awaited."""
        each = len(self._ranks(0))
        on_gpus = all(ready.gpus >= each + self.seat.first_gpu for ready in self.ready.values())
        backend = "nccl" if on_gpus else "gloo"
        where, descriptor = f"file://{self.folder}/store", -1
        if store is not None:
            host, port = store.getsockname()[:2]
            where, descriptor = f"tcp://{host}:{port}/{secrets.token_hex(8)}", store.fileno()
            self.progress.hosts = {rank: self._name(node) for node in self._nodes() for rank in self._ranks(node)}
        self._choose(backend)
        for line in self.lines.values():
            line.say({"say": "go", "backend": backend, "store": where})
        assert self.process is not None
        self.process.start(self._job(backend, where, descriptor))
        return self._heard_out(time.monotonic() + self.trial.deadline_seconds)

    def _heard_out(self, deadline: float) -> str:
        """Take records until all ranks have ended, or until the run must be ended."""
        self._moved = time.monotonic()
        broken_at: float | None = None
        while len(self.progress.ended) < len(self.plan.ranks):
            now = time.monotonic()
            self._look_for_lost(now)
            if self.progress.cannot:
                raise _Cannot(self.progress.cannot)
            if self.process is not None and self.process.gone and not self._own_ended():
                if self.progress.loaded is None:
                    raise _Cannot(self._why_no_start())
                return WHEN_GONE
            if broken_at is None and (self.progress.broken or self.progress.lost):
                broken_at = now
            limit, reason = deadline, AT_DEADLINE
            stalled = self._moved + self.trial.stall_seconds
            if broken_at is not None:
                limit = broken_at + GRACE_SECONDS
            elif self.progress.under_way and stalled < deadline:
                limit, reason = stalled, f"when nothing had moved for {self.trial.stall_seconds:g} s"
            if now >= limit:
                return reason
            self._listen(limit)
        return ""

    def _own_ended(self) -> bool:
        return all(rank in self.progress.ended for rank in self._ranks(0))

    def _look_for_lost(self, now: float) -> None:
        for node, line in self.lines.items():
            silent = now - line.heard
            if not line.open:
                self._lose(node, f"node {node} ({self._name(node)}) left the run")
            elif silent > self.trial.silent_seconds:
                self._lose(node, f"node {node} ({self._name(node)}) {self._silence}")

    def _own_record(self, record: Record) -> None:
        self._moved = time.monotonic()
        super()._own_record(record)

    def _message(self, line: Line, message: Message) -> None:
        try:
            self._take(line, message)
        except (KeyError, TypeError, ValueError, AttributeError):  # not what a supervisor says
            line.close()

    def _take(self, line: Line, message: Message) -> None:
        node = next((node for node, known in self.lines.items() if known is line), None)
        if node is None:
            self._introduce(line, message)
        elif message.get("say") == "record":
            self._moved = time.monotonic()
            record = parse(message["line"].encode())
            if isinstance(record, Ready):
                self.ready[node] = record
            self.progress.take(record)
        elif message.get("say") == "words":
            self.words[message["rank"]] = message["words"]
        elif message.get("say") == "cannot":
            self.progress.cannot = f"node {node} ({self._name(node)}): {message['why']}"

    def _introduce(self, line: Line, message: Message) -> None:
        """A caller says which node it is; one that runs another plan, or takes a place that is taken, is sent off."""
        self.strangers.remove(line)
        node = message.get("node")
        if message.get("say") != "hello" or not isinstance(node, int) or node not in range(1, self.seat.nodes):
            line.close()
            return
        around = _surroundings(message["around"])
        refused = ""
        if node in self.lines:
            refused = f"two supervisors say that they are node {node}"
        elif message["plan"] != fingerprint(self.plan):
            refused = f"node {node} ({around.host}) runs another plan than node 0: {message['degrees']}"
        if refused:
            self.seen.append(Observation("other-plan", "error", around.host, refused, "the same manifest and options"))
        if node in self.lines:
            line.say({"say": "refused", "why": refused})
            line.close()
            return
        self.lines[node] = line
        line.introduced = True
        self.around[node] = around
        self.seen += [Observation(*seen) for seen in message["observations"]]

    def _accept(self, listening: socket.socket) -> None:
        connection, _address = listening.accept()
        line = Line(connection)
        self.strangers.append(line)
        self._open.callback(line.close)

    def _lines(self) -> list[Line]:
        return [line for line in (*self.lines.values(), *self.strangers) if line.open]

    def _sockets(self) -> list[socket.socket]:
        return self._door

    def _listen_on(self, port: int) -> socket.socket:
        try:
            return self._open.enter_context(listen_on(self.seat.host, port))
        except OSError as failure:
            where = f"{self.seat.host}:{port}"
            raise _Cannot(f"node 0 cannot listen on {where}: {failure.strerror or failure}") from failure

    def _nodes(self) -> range:
        return range(self.seat.nodes)

    def _ranks(self, node: int) -> range:
        return self.seat.ranks(len(self.plan.ranks), node)

    def _name(self, node: int) -> str:
        return self.around[node].host if node in self.around else f"node {node}"

    def _hosts(self) -> tuple[Host, ...]:
        return tuple(
            Host(node, around.host, around.machine, around.memory_domain, around.network)
            for node, around in sorted(self.around.items())
        )


class Guest(_Node):
    """Another node: it hands on what its ranks say, and waits for the verdict."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path) -> None:
        super().__init__(plan, trial, folder)
        self.line: Line | None = None
        self.verdict: SmokeResult | None = None

    def _outcome(self) -> SmokeResult:
        if self._ranks_wanted:
            self._start_process()
        found = call(self.seat, self._limit)
        if isinstance(found, str):
            raise _Cannot(f"node {self.seat.node} did not meet node 0 in {self.trial.deadline_seconds:g} s: {found}")
        self.line = found
        self._open.callback(found.close)
        found.introduced = True
        found.say(self._hello())
        told_why = False
        while self.verdict is None:
            self._listen(time.monotonic() + BEAT_SECONDS)
            if not told_why and not self.progress.ended and (why := self._why_no_start()):
                told_why = True
                found.say({"say": "cannot", "why": why})
            silent = time.monotonic() - found.heard
            if self.verdict is None and (not found.open or silent > self.trial.silent_seconds):
                return self._alone()
        return self.verdict

    def _hello(self) -> Message:
        around = self.trial.around or Surroundings(socket.gethostname())
        return {
            "say": "hello",
            "node": self.seat.node,
            "plan": fingerprint(self.plan),
            "degrees": self.plan.degrees,
            "around": around._asdict(),
            "observations": self.own,
        }

    def _alone(self) -> SmokeResult:
        """Node 0 is lost: this node says what it knows."""
        assert self.line is not None
        how = f"node 0 ({self.seat.host}) {self._silence if self.line.open else 'left the run'}"
        if self.progress.loaded is None:
            raise _Cannot(how)
        for node in range(self.seat.nodes):
            if node != self.seat.node:
                self._lose(node, how if node == 0 else f"known to node 0 alone, and {how}")
        return self._composed(how, self.own, ())

    def _own_record(self, record: Record) -> None:
        assert self.line is not None
        super()._own_record(record)
        self.line.say({"say": "record", "line": json.dumps([type(record).__name__, *record])})
        if isinstance(record, Ended) and record.code:
            self.line.say({"say": "words", "rank": record.rank, "words": self.words[record.rank]})

    def _message(self, line: Line, message: Message) -> None:
        match message.get("say"):
            case "go" if self.process is not None:
                self._choose(message["backend"])
                self.process.start(self._job(message["backend"], message["store"]))
            case "verdict":
                self.verdict = SmokeResult.from_json(self.plan, message["result"])
            case "refused":
                raise _Cannot(message["why"])

    def _lines(self) -> list[Line]:
        return [self.line] if self.line is not None and self.line.open else []


def fingerprint(plan: Plan) -> str:
    """What nodes compare to know that they run the same plan."""
    planned = {key: value for key, value in plan.to_json().items() if key != "deviations"}
    return hashlib.sha256(json.dumps(planned, sort_keys=True).encode()).hexdigest()[:16]


def _timings(progress: Progress, trial: Trial) -> Iterator[Timing]:
    """A group is as slow as its slowest member."""
    slowest: dict[tuple[int, tuple[int, ...], str], Timing] = {}
    for timed in progress.timed:
        exchange = trial.exchanges[timed.exchange]
        group = progress.plan.group_of(exchange.kind, timed.rank)
        mode: Mode = "alone" if timed.mode == "alone" else "together"
        found = Timing(exchange, group, mode, timed.bytes, timed.median_us, timed.p99_us)
        key = (timed.exchange, group, mode)
        if key not in slowest or slowest[key].median_us < found.median_us:
            slowest[key] = found
    yield from slowest.values()


def _surroundings(data: dict[str, Any]) -> Surroundings:
    return Surroundings(**data)


def _span(ranks: range) -> str:
    return f"{ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else str(ranks[0])
