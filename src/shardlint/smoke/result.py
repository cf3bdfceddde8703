"""What a run came to: its claims, each with the ranks that judged it, and what was proven by them."""

from __future__ import annotations

from typing import Any, NamedTuple

from shardlint.layout import Group
from shardlint.smoke.claims import CLAIMS, expected
from shardlint.smoke.exchanges import Exchange, Timing, whole_classes
from shardlint.smoke.job import Level
from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan
from shardlint.smoke.trial import Host

HELD, FAILED, COULD_NOT_RUN = 0, 1, 2
"""Exit codes."""


class Claim(NamedTuple):
    """One rank's judgement of one claim over one group (`kind` and `group`); a message where it does not hold."""

    name: str
    kind: str
    group: Group
    rank: int
    ok: bool
    message: str = ""


class SmokeResult(NamedTuple):
    """All that one run showed."""

    plan: Plan
    claims: tuple[Claim, ...] = ()
    could_not_run: str = ""
    """Why nothing was tried; empty where something was."""
    backend: str = ""
    """nccl, gloo or ON_ONE_GPU."""
    torch: str = ""
    """Its version."""
    seconds: float = 0.0
    observations: tuple[Observation, ...] = ()
    """What was seen of hosts and links."""
    hosts: tuple[Host, ...] = ()
    timings: tuple[Timing, ...] = ()
    """Of groups all of whose members have spoken; a run that breaks has them of some groups only."""
    level: Level = "quick"
    exchanges: tuple[Exchange, ...] = ()
    """What was to be timed."""

    @property
    def errors(self) -> tuple[Observation, ...]:
        """What was seen that fails the run whatever the claims say."""
        return tuple(seen for seen in self.observations if seen.severity == "error")

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the claims that did not hold somewhere."""
        wrong = {claim.name for claim in self.claims if not claim.ok}
        return tuple(name for name in CLAIMS if name in wrong)

    @property
    def proven(self) -> tuple[str, ...]:
        """The names of the claims that held wherever the plan has them."""
        held = {(claim.name, claim.kind, claim.rank) for claim in self.claims if claim.ok}
        wrong = self.failed
        return tuple(
            name
            for name, judges in expected(self.plan).items()
            if name not in wrong and all((name, kind, rank) in held for kind, rank in judges)
        )

    @property
    def not_reached(self) -> tuple[str, ...]:
        """The names of the claims that some rank did not come to judge."""
        decided = self.failed + self.proven
        return tuple(name for name in expected(self.plan) if name not in decided)

    @property
    def not_timed(self) -> tuple[Exchange, ...]:
        """The exchanges that were to be timed, and were not in every group."""
        timed = {timing.exchange for timing in whole_classes(self.timings, self.plan.groups)}
        return tuple(exchange for exchange in self.exchanges if exchange not in timed)

    @property
    def exit_code(self) -> int:
        """0 all claims held, 1 one failed or was not reached, 2 could not run."""
        if self.could_not_run:
            return COULD_NOT_RUN
        broken = self.failed or self.errors or (self.not_reached and self.level != "pre")
        return FAILED if broken else HELD

    @property
    def kind(self) -> str:
        """What became of the run, in a word."""
        if self.could_not_run:
            return "could-not-run"
        if self.errors:
            return "surroundings"
        if "ranks" in self.failed:
            return "rank-lost"
        return "claim-failed" if self.exit_code else "held"

    def to_json(self) -> dict[str, Any]:
        """What another node needs to say the same, without the plan, which it has."""
        return {**self._asdict(), "plan": None, "hosts": [host.to_json() for host in self.hosts]}

    @classmethod
    def from_json(cls, plan: Plan, data: dict[str, Any]) -> SmokeResult:
        """A result from what `to_json` gave, after a way through JSON."""
        rebuilt = {
            "claims": tuple(Claim(name, kind, tuple(group), *rest) for name, kind, group, *rest in data["claims"]),
            "observations": tuple(Observation(*each) for each in data["observations"]),
            "hosts": tuple(map(Host.from_json, data["hosts"])),
            "timings": tuple(
                Timing(Exchange(*exchange), tuple(group), *rest) for exchange, group, *rest in data["timings"]
            ),
            "exchanges": tuple(Exchange(*each) for each in data["exchanges"]),
        }
        return cls(**{**data, **rebuilt, "plan": plan})
