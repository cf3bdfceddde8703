"""Node 0, or the only one: it waits for the others, hears all ranks to the end, and says what became of the run."""

from __future__ import annotations

import secrets
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from shardlint._version import __version__
from shardlint.smoke.conversation import Line, Message, endpoint, listen_on
from shardlint.smoke.crossing import crossings
from shardlint.smoke.doors import Called, Place, seconds_for
from shardlint.smoke.job import ON_ONE_GPU
from shardlint.smoke.node import AT_DEADLINE, CannotTry, Node, Tell, fingerprint, silent
from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan
from shardlint.smoke.precheck import differences
from shardlint.smoke.reach import unreached
from shardlint.smoke.records import Cannot, Ready, Record, parse
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.shapes import checked
from shardlint.smoke.surroundings import Surroundings
from shardlint.smoke.transports import logged, transport_observations
from shardlint.smoke.trial import Host, Trial, places

GRACE_SECONDS = 0.5
"""How long the others may still speak when a rank has died: the first to be reaped need not be the first cause."""

ANSWER_SECONDS = 2.0
"""How long a node may take to answer beside what it was asked to do."""

HELLO_SECONDS = 5.0
"""How long a caller may take to say who it is."""

MOST_STRANGERS = 64
"""Callers at once of which that is not known; one more, and the first of them is sent off."""

MOST_VERSION = 40
"""Characters of what a caller says of its version that are repeated."""

WHEN_GONE = "when the process that had started it was gone"


class Judge(Node):
    """Node 0, or the only one."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path, tell: Tell = silent) -> None:
        super().__init__(plan, trial, folder, tell)
        self.lines: dict[int, Line] = {}
        self.strangers: list[Line] = []
        self._open.callback(self._send_off, self.strangers)
        self.refused: dict[int, str] = {}
        """Nodes that cannot take part, with the reason."""
        self.around = {0: self.host}
        self.places: dict[int, list[Place]] = {}
        self.called: dict[int, list[Called]] = {}
        self.channels: dict[int, Counter[str]] = {}
        """Those of NCCL on each node, by transport."""
        self.seen: list[Observation] = list(self.own)
        self._door: list[socket.socket] = []
        self._moved = time.monotonic()

    def _outcome(self) -> SmokeResult:
        listening = (self.trial.door or self._listen_on(self.seat.port)) if self.seat.nodes > 1 else None
        store = self._listen_on(0) if self.seat.nodes > 1 else None
        if listening is not None:
            self._door.append(listening)
        if self._ranks_wanted:
            self._start_process(store.fileno() if store else -1)
        try:
            result = self._judged(store)
        except CannotTry as reason:
            result = SmokeResult(self.plan, could_not_run=str(reason), hosts=self._hosts())
        for line in self.lines.values():
            line.say({"say": "verdict", "result": result.to_json()})
        return result

    def _judged(self, store: socket.socket | None) -> SmokeResult:
        self._meet()
        if self.not_compared:  # which the others are told too, now that they are here
            raise CannotTry(self.not_compared)
        self._see_who_reaches_whom()
        hosts = self._hosts()
        self.seen += differences(list(self.around.values()))
        if self.seat.nodes > 1 or self.trial.planned_nodes:
            self.seen += crossings(self.plan, self.seat, hosts, self.trial.planned_nodes)
        if self.trial.level == "pre" or any(seen.severity == "error" for seen in self.own_and_others()):
            return SmokeResult(self.plan, observations=tuple(self.seen), hosts=hosts)
        self._await_torch()
        self.seen += self.versions()
        reason = self._tried(store)
        result = self._composed(reason, tuple(self.seen), self._hosts())
        return result._replace(observations=(*result.observations, *self._transports(result.hosts)))

    def own_and_others(self) -> list[Observation]:
        """What keeps the ranks from being started at all: of hosts, and not of the places of ranks."""
        return [seen for seen in self.seen if seen.name != "crosses-nodes"]

    def _meet(self) -> None:
        """Wait for all nodes."""
        wanted = set(range(1, self.seat.nodes))
        if wanted:
            where = endpoint(self.seat.host, self.seat.port)
            self.tell(f"waiting for {len(wanted)} more of {self.seat.nodes} nodes at {where}")
        while wanted - self.lines.keys() - self.refused.keys():
            if not self._listen(self._limit):
                missing = sorted(wanted - self.lines.keys() - self.refused.keys())
                of = "; ".join(f"node {node} (ranks {_span(self._ranks(node))})" for node in missing)
                here = len(self.lines) + 1
                seconds = f"{self.trial.deadline_seconds:g} s"
                came = f"{here} of {self.seat.nodes} nodes came within {seconds}; missing: {of}"
                raise CannotTry("; ".join([*self.refused.values(), came]))
        if self.refused:
            raise CannotTry("; ".join(self.refused.values()))

    def _see_who_reaches_whom(self) -> None:
        """Have all hosts call each other, and wait until they have said what came of it."""
        apart = sorted(set(places(self._hosts()).values()))
        if len(apart) < 2:
            return
        self.tell(f"calling between {len(apart)} hosts")
        self._open_doors(self.lines[apart[1]])
        self.places[0] = self.calls.places
        for node in apart:
            others = [place for other in apart if other != node for place in self.places[other]]
            if node == 0:
                self.calls.call(others)
            else:
                self.lines[node].say({"say": "reach", "places": others})
        until = time.monotonic() + seconds_for(sum(map(len, self.places.values()))) + ANSWER_SECONDS
        self._await(apart[1:], self.called, until)
        while not self.calls.is_done and self._listen(until):
            pass
        self.called[0] = self.calls.called
        names = [self._name(node) for node in apart]
        unlike = {
            node: name if names.count(name) == 1 else f"{name} (node {node})"
            for node, name in zip(apart, names, strict=True)
        }
        self.seen += unreached(unlike, self.called)

    def _await(self, nodes: Iterable[int], heard: Mapping[int, object], until: float) -> None:
        """Wait for what nodes have been asked; those that leave or take too long are missing in what is heard."""
        while any(node not in heard and self.lines[node].open for node in nodes) and self._listen(until):
            pass

    def _transports(self, hosts: tuple[Host, ...]) -> Iterator[Observation]:
        """What NCCL's logs say on all nodes that can still be asked, added up for each host."""
        self.channels[0] = logged(self.folder)
        now = time.monotonic()
        asked = [node for node, line in self.lines.items() if now - line.heard <= self.trial.silent_seconds]
        for node in asked:
            self.lines[node].say({"say": "logs"})
        self._await(asked, self.channels, now + ANSWER_SECONDS)
        place = places(hosts)
        of_host: dict[int, Counter[str]] = {}
        for node, channels in self.channels.items():
            of_host.setdefault(place[node], Counter()).update(channels)
        for node, found in sorted(of_host.items()):
            host = self._name(node) if len(set(place.values())) > 1 else ""
            yield from transport_observations(found, bool(self.around[node].ports), host)

    def _await_torch(self) -> None:
        self.tell("importing torch")
        while len(self.ready) < self.seat.nodes:
            if why := self._why_no_start():
                raise CannotTry(why)
            for node, line in self.lines.items():
                if not line.open:
                    raise CannotTry(f"node {node} left before its ranks were started")
            if not self._listen(self._limit):
                raise CannotTry(f"torch was still being imported {AT_DEADLINE}")

    def versions(self) -> Iterator[Observation]:
        """Nodes with other releases of torch or NCCL may not understand each other."""
        for what in ("torch", "nccl"):
            found = {node: getattr(ready, what) for node, ready in sorted(self.ready.items())}
            if len(set(found.values())) > 1:
                said = ", ".join(f"{version or 'none'} on {self._name(node)}" for node, version in found.items())
                yield Observation("versions", "warning", "", f"{what} is {said}", "one image on all nodes")

    def _tried(self, store: socket.socket | None) -> str:
        """Have the ranks started, and hear them to the end; why no more was awaited."""
        on_gpus = all(ready.gpus >= len(self._ranks(node)) + self.seat.first_gpu for node, ready in self.ready.items())
        backend = "nccl" if on_gpus else "gloo"
        if self.trial.share_gpu:
            backend = ON_ONE_GPU
            if without := [self._name(node) for node, ready in sorted(self.ready.items()) if not ready.gpus]:
                raise CannotTry(f"the ranks are to share a GPU, and torch sees none on {', '.join(without)}")
        where, descriptor = f"file://{self.folder}/store", -1
        if store is not None:
            host, port = store.getsockname()[:2]
            where, descriptor = f"tcp://{endpoint(host, port)}/{secrets.token_hex(8)}", store.fileno()
            self.progress.hosts = {rank: self._name(node) for node in self._nodes() for rank in self._ranks(node)}
        self._choose(backend)
        for line in self.lines.values():
            line.say({"say": "go", "backend": backend, "store": where})
        assert self.process is not None
        self.tell(f"starting {len(self.plan.ranks)} ranks ({backend})")
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
                raise CannotTry(self.progress.cannot)
            if self.process is not None and self.process.gone and not self._own_ended():
                if self.progress.loaded is None:
                    raise CannotTry(self._why_no_start())
                return WHEN_GONE
            if broken_at is None and (self.progress.broken or self.progress.lost):
                broken_at = now
            limit, reason = deadline, AT_DEADLINE
            patience = self.progress.patience(self.trial.stall_seconds)
            if broken_at is not None:
                limit = broken_at + GRACE_SECONDS
            elif self._moved + patience < deadline:
                limit, reason = self._moved + patience, f"when nothing had moved for {patience:g} s"
            if now >= limit:
                self._look_for_stopped(reason)
                return reason
            self._listen(limit)
        return ""

    def _look_for_stopped(self, reason: str) -> None:
        """Ranks of a process that is frozen have perhaps long ended."""
        if self.process is not None and not self.process.gone and (stopped := self.process.stopped):
            raise CannotTry(f"the process that starts the ranks (process {stopped}) was frozen by a signal {reason}")

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
            record = checked(parse(message["line"].encode()))
            if isinstance(record, Ready):
                self.ready[node] = record
            elif isinstance(record, Cannot):
                record = Cannot(f"node {node} ({self._name(node)}): {record.reason}")
            self.progress.take(record)
        elif message.get("say") == "reached":
            self.called[node] = [Called.from_json(called) for called in message["called"]]
        elif message.get("say") == "logs":
            self.channels[node] = Counter({str(way): int(count) for way, count in message["channels"].items()})
        elif message.get("say") == "words":
            self.words[int(message["rank"])] = str(message["words"])
        elif message.get("say") == "cannot":
            self.progress.cannot = f"node {node} ({self._name(node)}): {message['why']}"

    def _introduce(self, line: Line, message: Message) -> None:
        """A caller says which node it is; one that runs another plan, or takes a place that is taken, is sent off."""
        self.strangers.remove(line)
        node = message["node"]
        version = message["version"]
        is_known = isinstance(node, int) and isinstance(version, str) and node in range(1, self.seat.nodes)
        if message.get("say") != "hello" or not is_known:
            line.close()
            return
        if version != __version__:  # whose words may mean something else
            self.refused[node] = f"node {node} runs shardlint {version[:MOST_VERSION]}, node 0 {__version__}"
            line.say({"say": "refused", "why": self.refused[node]})
            line.close()
            return
        around = Surroundings.from_json(message["around"])
        where = [Place.from_json(place)._replace(node=node) for place in message["places"]]
        own = [checked(Observation(*seen)) for seen in message["observations"]]
        refused = ""
        if node in self.lines:
            refused = f"two supervisors say that they are node {node}"
        elif message["level"] != self.trial.level:
            level = str(message["level"])
            refused = f"node {node} ({around.host}) runs --level {level}, node 0 --level {self.trial.level}"
        elif message["plan"] != fingerprint(self.plan, self.trial):
            refused = f"node {node} ({around.host}) runs another plan than node 0: {message['degrees']}"
        if refused:
            self.seen.append(Observation("other-plan", "error", around.host, refused, "the same manifest and options"))
        if node in self.lines:
            line.say({"say": "refused", "why": refused})
            line.close()
            return
        self.lines[node] = line
        self.refused.pop(node, None)
        self._open.callback(line.close)
        line.introduced = True
        self.around[node] = around
        self.places[node] = where
        self.seen += own

    def _accept(self, listening: socket.socket) -> None:
        try:
            connection, _address = listening.accept()
            line = Line(connection)
        except OSError:  # it has gone already
            return
        self.strangers.append(line)

    def _listen(self, limit: float) -> bool:
        goes_on = super()._listen(limit)
        late = time.monotonic() - HELLO_SECONDS
        known = [line for line in self.strangers if line.open and line.begun > late][-MOST_STRANGERS:]
        self._send_off([line for line in self.strangers if line not in known])
        self.strangers[:] = known
        return goes_on

    def _send_off(self, lines: Iterable[Line]) -> None:
        for line in lines:
            line.close()

    def _lines(self) -> list[Line]:
        return [line for line in (*self.lines.values(), *self.strangers) if line.open]

    def _sockets(self) -> list[socket.socket]:
        return self._door

    def _listen_on(self, port: int) -> socket.socket:
        try:
            return self._open.enter_context(listen_on(self.seat.host, port))
        except OSError as failure:
            where = endpoint(self.seat.host, port)
            raise CannotTry(f"node 0 cannot listen on {where}: {failure.strerror or failure}") from failure

    def _nodes(self) -> range:
        return range(self.seat.nodes)

    def _ranks(self, node: int) -> range:
        return self.seat.ranks(len(self.plan.ranks), node)

    def _name(self, node: int) -> str:
        return self.around[node].host if node in self.around else f"node {node}"

    def _hosts(self) -> tuple[Host, ...]:
        versions = {node: self.ready.get(node, Ready("", 0)) for node in self.around}
        return tuple(
            Host(node, around, versions[node].torch, versions[node].nccl)
            for node, around in sorted(self.around.items())
        )


def _span(ranks: range) -> str:
    return f"{ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else str(ranks[0])
