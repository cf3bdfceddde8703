"""What a run came to: its claims, each with the ranks that judged it, and what was proven by them."""

from __future__ import annotations

from typing import NamedTuple

from shardlint.layout import Group, place_of
from shardlint.smoke.plan import Plan

HELD, FAILED, COULD_NOT_RUN = 0, 1, 2
"""Exit codes."""

CLAIMS = {
    "membership": "every group holds the planned ranks",
    "split-mlp": "a column-parallel, then row-parallel MLP with one all-reduce equals the unsplit product",
    "stage-hand-off": "hidden_states and residual reach each stage as the layers before it give them",
    "all-layers": "the last stage ends as the unsplit model does",
    "replicas": "replicas give equal results",
    "ranks": "every rank comes to its end",
}
"""What can be claimed, in the order in which it is tried. Tolerance is 0: all numbers are whole."""

JUDGED_FROM_OUTSIDE = ("replicas", "ranks")
"""Claims that no rank can judge for itself."""


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


def expected(plan: Plan) -> dict[str, set[tuple[str, int]]]:
    """The claims that a plan gives rise to: which ranks judge each, over which kind of group."""
    stage_of = {rank: place_of(rank, plan.sizes).pipeline for rank in plan.ranks}
    judges = {
        "membership": {(kind, rank) for kind in ("world", *plan.groups) for rank in plan.ranks},
        "split-mlp": {("tp", rank) for rank in plan.ranks if "tp" in plan.groups},
        "stage-hand-off": {("pp", rank) for rank in plan.ranks if stage_of[rank] > 0},
        "all-layers": {("world", rank) for rank in plan.ranks if stage_of[rank] == len(plan.stages) - 1},
        "replicas": {("twins", group[0]) for group in plan.twins},
        "ranks": {("world", rank) for rank in plan.ranks},
    }
    return {name: judged for name, judged in judges.items() if judged}
