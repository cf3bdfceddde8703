"""The parent's side of a run on one host, or of one node of several. Imports no torch.

Node 0 judges: it hears the records of all nodes, and tells the others its verdict, so that all of them name the same
cause. A node that loses node 0 says so by itself.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from shardlint.smoke.guest import Guest
from shardlint.smoke.judge import Judge
from shardlint.smoke.node import Tell, silent
from shardlint.smoke.plan import Plan
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.trial import Trial


def run(plan: Plan, trial: Trial = Trial(), tell: Tell = silent) -> SmokeResult:  # noqa: B008 it cannot change
    """Try a plan: on the GPUs by NCCL where each rank has one, else on the CPU by gloo.

    Ends within the deadline (and the moment that it takes to end processes), leaves no process behind, and names the
    rank or node that died, hangs or is lost. `tell` is given a line as each phase begins.
    """
    start = time.monotonic()
    side = Judge if trial.seat.node == 0 else Guest
    with (
        tempfile.TemporaryDirectory(prefix="shardlint-smoke-") as folder,
        side(plan, trial, Path(folder), tell) as node,
    ):
        result = node.outcome()
    return result._replace(seconds=time.monotonic() - start, level=trial.level)
