"""The planned layout, tried for real: the same ranks, groups and stages, before any weight is loaded."""

from shardlint.smoke.plan import Plan
from shardlint.smoke.planning import plan_of
from shardlint.smoke.result import Claim, SmokeResult
from shardlint.smoke.supervise import DEADLINE_SECONDS, run

__all__ = ["DEADLINE_SECONDS", "Claim", "Plan", "SmokeResult", "plan_of", "run"]
