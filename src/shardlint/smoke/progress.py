"""What is known of a run from its records: who has come how far, and, when it breaks, whose fault that is."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan
from shardlint.smoke.records import (
    Cannot,
    Checked,
    Doing,
    Ended,
    Loaded,
    Raised,
    Ready,
    Record,
    Result,
    Started,
    Stopped,
    Timed,
    Uses,
)
from shardlint.smoke.result import Claim

START_UP = ("start-up", "groups")
START_UP_SECONDS = 30.0
"""How long one step of these may take inside of the driver or of NCCL, which open GPUs and look for ways between them.
gloo needs no such time: 32 ranks on 2 busy cores (a load of 17) have met and made their groups within 1.3 s, in which
nobody says a word for 0.2 s at most, and for 0.9 s in all the rest of the run."""

SECONDARY = (
    "closed by peer",
    "reset by peer",
    "Timed out waiting",
    "received errors while waiting",
    "Broken pipe",
    "connectFullMesh failed",
)
"""How gloo reports that somebody else has gone: such errors follow from another rank's."""


@dataclass(slots=True)
class Progress:
    """The state of every rank, kept up record by record."""

    plan: Plan
    loaded: Loaded | None = None
    cannot: str = ""
    claims: list[Claim] = field(default_factory=list)
    processes: dict[int, int] = field(default_factory=dict)
    doing: dict[int, Doing] = field(default_factory=dict)
    raised: dict[int, str] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    """Exit codes in the order of the ends."""
    digests: dict[int, str] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    """Ranks whose processes a signal has stopped."""
    gpus: dict[int, str] = field(default_factory=dict)
    timed: list[Timed] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    """Where each rank runs; empty where all run on this host."""
    lost: dict[int, str] = field(default_factory=dict)
    """Ranks of nodes that were lost on the way, with how."""

    def take(self, record: Record) -> None:
        """One record more."""
        match record:
            case Ready():
                pass
            case Loaded():
                self.loaded = record
            case Cannot():
                self.cannot = record.reason
            case Started():
                self.processes[record.rank] = record.process
            case Doing():
                self.doing[record.rank] = record
            case Checked():
                group = self.plan.group_of(record.kind, record.rank)
                self.claims.append(Claim(record.claim, record.kind, group, record.rank, record.ok, record.message))
            case Uses():
                self.gpus[record.rank] = record.gpu
            case Timed():
                self.timed.append(record)
            case Stopped():
                self.stopped.add(record.rank)
            case Result():
                self.digests[record.rank] = record.digest
            case Raised():
                self.raised[record.rank] = record.error
            case Ended():
                self.ended[record.rank] = record.code

    def patience(self, stall_seconds: float) -> float:
        """How long silence may last before it means that something hangs.

        It is longer where whoever would be blamed is in a step of start-up that may be slow by itself.
        """
        at_work = (self.doing.get(rank) for rank in self._suspects() if rank not in self.stopped)
        is_slow = any(doing and doing.check in START_UP and doing.operation for doing in at_work)
        return max(stall_seconds, START_UP_SECONDS) if is_slow else stall_seconds

    @property
    def broken(self) -> bool:
        """A rank has ended before its time."""
        return any(self.ended.values())

    def shared_gpus(self) -> Iterator[Observation]:
        """Two ranks of one GPU: NCCL refuses that, or does not see it where containers hide it."""
        of_gpu: dict[str, list[int]] = {}
        for rank, gpu in sorted(self.gpus.items()):
            of_gpu.setdefault(gpu, []).append(rank)
        for gpu, ranks in of_gpu.items():
            if len(ranks) > 1:
                message = f'ranks {ranks} are all on {gpu}: NCCL stops with "Duplicate GPU detected"'
                advice = "give each rank a GPU of its own: CUDA_VISIBLE_DEVICES, LOCAL_RANK, the pod's GPUs"
                yield Observation("same-gpu", "error", self.hosts.get(ranks[0], ""), message, advice)

    def replica_claims(self) -> Iterator[Claim]:
        """The judgement that no rank can make: replicas come to the same tensors."""
        for twins in self.plan.twins:
            digests = {rank: self.digests.get(rank) for rank in twins}
            if None not in digests.values():
                odd = [rank for rank, digest in digests.items() if digest != digests[twins[0]]]
                message = f"ranks {odd} end with other tensors than rank {twins[0]}" if odd else ""
                yield Claim("replicas", "twins", twins, twins[0], not odd, message)

    def end_claims(self, reason: str, last_words: Mapping[int, str]) -> Iterator[Claim]:
        """Whether each rank came to its end.

        `reason` says why the run was ended where it did not end by itself, `last_words` what a rank wrote last.
        """
        faults = self._faults(reason, last_words)
        for rank in self.plan.ranks:
            if rank in faults:
                yield Claim("ranks", "world", self.plan.world_of(rank), rank, False, faults[rank])
            elif self.ended.get(rank) == 0:
                yield Claim("ranks", "world", self.plan.world_of(rank), rank, True)

    def _faults(self, reason: str, last_words: Mapping[int, str]) -> dict[int, str]:
        """The ranks that are to blame: those that died of themselves, else those that keep others waiting."""
        dead = [rank for rank, code in self.ended.items() if code]
        first = [rank for rank in dead if not self._is_secondary(rank)]
        if self.lost and not first:
            return {rank: f"{self._name(rank)}: {how}" for rank, how in self.lost.items()}
        if dead:
            first = first or dead[:1]
            return {rank: self._death(rank, last_words.get(rank, "")) for rank in first}
        return {rank: f"{self._name(rank)} {self._place(rank)} {reason}" for rank in self._suspects()}

    def _suspects(self) -> list[int]:
        """The ranks that keep the others waiting: frozen ones, else those that wait for nobody, else all."""
        unfinished = [rank for rank in self.plan.ranks if rank not in self.ended]
        frozen = [rank for rank in unfinished if rank in self.stopped]
        return frozen or [rank for rank in unfinished if not self._waits(rank)] or unfinished

    def _is_secondary(self, rank: int) -> bool:
        return any(words in self.raised.get(rank, "") for words in SECONDARY)

    def _waits(self, rank: int) -> bool:
        return rank in self.doing and bool(self.doing[rank].awaited)

    def _death(self, rank: int, last_words: str) -> str:
        code = self.ended[rank]
        where = f"in {self.doing[rank].check}" if rank in self.doing else "before it began"
        if rank in self.raised:
            return f"{self._name(rank)} raised {where}: {self.raised[rank]}"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name(rank)} {how} {where}" + (f": {last_words}" if last_words else "")

    def _place(self, rank: int) -> str:
        """Where a rank hangs, and who waits for it."""
        doing = self.doing.get(rank)
        if doing is None:
            return "had not begun"
        was = "was frozen by a signal" if rank in self.stopped else "was"
        if doing.awaited:
            return f"{was} in {doing.check}, in {doing.operation} of {doing.kind} with ranks {list(doing.awaited)},"
        waiting = [other for other, state in self.doing.items() if rank in state.awaited and other not in self.ended]
        where = f"{was} in {doing.check}, in {doing.operation or 'no collective'},"
        return where + (f" while ranks {sorted(waiting)} waited for it," if waiting else "")

    def _name(self, rank: int) -> str:
        known = [f"process {self.processes[rank]}"] if rank in self.processes else []
        known += [f"on {self.hosts[rank]}"] if rank in self.hosts else []
        return f"rank {rank} ({' '.join(known)})" if known else f"rank {rank}"
