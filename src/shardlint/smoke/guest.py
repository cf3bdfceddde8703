"""A node beside node 0: it hands on what its ranks say, and repeats the verdict."""

from __future__ import annotations

import json
import time
from pathlib import Path

from shardlint._version import __version__
from shardlint.smoke.conversation import BEAT_SECONDS, Line, Message, call, endpoint
from shardlint.smoke.doors import Place
from shardlint.smoke.node import CannotTry, Node, Tell, fingerprint, silent
from shardlint.smoke.plan import Plan
from shardlint.smoke.records import Ended, Record
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.transports import logged, transport_observations
from shardlint.smoke.trial import Trial


class Guest(Node):
    """Another node: it hands on what its ranks say, and waits for the verdict."""

    def __init__(self, plan: Plan, trial: Trial, folder: Path, tell: Tell = silent) -> None:
        super().__init__(plan, trial, folder, tell)
        self.line: Line | None = None
        self.verdict: SmokeResult | None = None
        self._is_asked = False
        """Node 0 wants to know whom this node reaches."""

    def _outcome(self) -> SmokeResult:
        if self._ranks_wanted:
            self._start_process()
        self.tell(f"calling node 0 at {endpoint(self.seat.host, self.seat.port)}")
        found = call(self.seat, self._limit)
        if isinstance(found, str):
            raise CannotTry(f"node {self.seat.node} did not meet node 0 in {self.trial.deadline_seconds:g} s: {found}")
        self.line = found
        self._open.callback(found.close)
        found.introduced = True
        self._open_doors(found)
        found.say(self._hello())
        told_why = False
        while self.verdict is None:
            self._listen(time.monotonic() + BEAT_SECONDS)
            if not told_why and not self.progress.ended and (why := self._why_no_start()):
                told_why = True
                found.say({"say": "cannot", "why": why})
            if self._is_asked and self.calls.is_done:
                self._is_asked = False
                found.say({"say": "reached", "called": self.calls.called})
            silent = time.monotonic() - found.heard
            if self.verdict is None and (not found.open or silent > self.trial.silent_seconds):
                return self._alone()
        return self.verdict

    def _hello(self) -> Message:
        return {
            "say": "hello",
            "node": self.seat.node,
            "version": __version__,
            "level": self.trial.level,
            "plan": fingerprint(self.plan, self.trial),
            "degrees": self.plan.degrees,
            "around": self.host.to_json(),
            "observations": self.own,
            "places": self.calls.places,
        }

    def _alone(self) -> SmokeResult:
        """Node 0 is lost: this node says what it knows."""
        assert self.line is not None
        how = f"node 0 ({self.seat.host}) {self._silence if self.line.open else 'left the run'}"
        if self.progress.loaded is None:
            raise CannotTry(how)
        for node in range(self.seat.nodes):
            if node != self.seat.node:
                self._lose(node, how if node == 0 else f"known to node 0 alone, and {how}")
        seen = transport_observations(logged(self.folder), bool(self.host.ports), self.host.host)
        return self._composed(how, (*self.own, *seen), ())

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
            case "reach":
                self._is_asked = True
                self.calls.call([Place.from_json(place) for place in message["places"]])
            case "logs":
                line.say({"say": "logs", "channels": logged(self.folder)})
            case "verdict":
                self.verdict = SmokeResult.from_json(self.plan, message["result"])
            case "refused":
                raise CannotTry(message["why"])

    def _lines(self) -> list[Line]:
        return [self.line] if self.line is not None and self.line.open else []
