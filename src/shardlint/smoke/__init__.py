"""The planned layout, tried for real: the same ranks, groups and stages, before any weight is loaded."""

from shardlint.smoke.plan import Plan
from shardlint.smoke.planning import plan_of
from shardlint.smoke.result import Claim, SmokeResult
from shardlint.smoke.supervise import run
from shardlint.smoke.trial import DEADLINE_SECONDS, Trial

__all__ = ["DEADLINE_SECONDS", "Claim", "Plan", "SmokeResult", "Trial", "plan_of", "run"]
