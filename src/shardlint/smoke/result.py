"""What a run came to: its claims, each with the ranks that judged it, and what was proven by them."""

from __future__ import annotations

from typing import NamedTuple

from shardlint.layout import Group
from shardlint.smoke.claims import CLAIMS, expected
from shardlint.smoke.plan import Plan

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
    """nccl or gloo."""
    torch: str = ""
    """Its version."""
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the claims that did not hold somewhere."""
        return tuple(name for name in CLAIMS if any(claim.name == name and not claim.ok for claim in self.claims))

    @property
    def proven(self) -> tuple[str, ...]:
        """The names of the claims that held wherever the plan has them."""
        return tuple(name for name in expected(self.plan) if self._held(name))

    @property
    def not_reached(self) -> tuple[str, ...]:
        """The names of the claims that some rank did not come to judge."""
        decided = self.failed + self.proven
        return tuple(name for name in expected(self.plan) if name not in decided)

    @property
    def exit_code(self) -> int:
        """0 all claims held, 1 one failed or was not reached, 2 could not run."""
        if self.could_not_run:
            return COULD_NOT_RUN
        return FAILED if self.failed or self.not_reached else HELD

    def _held(self, name: str) -> bool:
        judged = {(claim.kind, claim.rank) for claim in self.claims if claim.name == name and claim.ok}
        return name not in self.failed and judged >= expected(self.plan)[name]
