"""The process that joins a Ray cluster and runs a plan there, as its parent sees it. Imports no Ray.

Ray waits for a cluster that is gone for minutes, and ends the process that has lost one; so it is a process of its own,
and the sentence is said by its parent.
"""

from __future__ import annotations

import json
import os
import select
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shardlint.smoke.node import CannotTry, Tell
from shardlint.smoke.own_process import OwnProcess
from shardlint.smoke.plan import Plan
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.trial import Trial

NO_RAY = "ray is not installed: --launch ray is for the images and environments that Ray's nodes run in"
PHASES = 3
"""The deadline holds for the supervisors to be placed, for them to meet, and for the run."""
MARGIN_SECONDS = 30.0
"""Beyond that, for processes to be ended: whoever is silent still is not going to speak."""
HAND_BACK_SECONDS = 15.0
"""For a process that has joined to end supervisors and hand back what they were given, before it is ended."""


class RayCluster:
    """The cluster that was joined."""

    def __init__(self, process: OwnProcess, tell: Tell) -> None:
        self._process = process
        self._tell = tell
        self.gpus = 0
        """In all of its nodes together; 0 where they have none."""

    def join(self, seconds: float) -> None:
        """Raises CannotTry where there is no cluster, or none that answers in time."""
        where = os.environ.get("RAY_ADDRESS") or "of this host"
        self._tell(f"joining the Ray cluster {where}")
        self.gpus = self._hear("joined", seconds, f"the Ray cluster {where} did not answer within {seconds:g} s")
        self._process.goodbye_seconds = HAND_BACK_SECONDS

    def run(self, plan: Plan, trial: Trial) -> SmokeResult:
        """Try a plan on the nodes that Ray chooses for it. Raises CannotTry where it could not be."""
        self._process.say({"plan": plan.to_json(), "trial": trial.to_json()})
        seconds = PHASES * trial.deadline_seconds + MARGIN_SECONDS
        result = self._hear("result", seconds, f"the Ray cluster did not come to a result within {seconds:g} s")
        return SmokeResult.from_json(plan, result)

    def _hear(self, word: str, seconds: float, late: str) -> Any:
        """What comes under a word."""
        limit = time.monotonic() + seconds
        while select.select([self._process], [], [], max(0.0, limit - time.monotonic()))[0]:
            for line in self._process.lines():
                message = json.loads(line)
                if word in message:
                    return message[word]
                if "cannot" in message:
                    raise CannotTry(message["cannot"])
                self._tell(message["tell"])
            if self._process.gone:
                raise CannotTry(f"the process that joins the Ray cluster ended: {self._process.last_line()}")
        raise CannotTry(late)


@contextmanager
def ray_cluster(seconds: float, tell: Tell) -> Iterator[RayCluster]:
    """The cluster that RAY_ADDRESS names, or whose node this host is. Raises CannotTry."""
    if find_spec("ray") is None:
        raise CannotTry(NO_RAY)
    with (
        tempfile.TemporaryDirectory(prefix="shardlint-smoke-") as folder,
        OwnProcess("shardlint.smoke.ray_cluster", Path(folder)) as process,
    ):
        cluster = RayCluster(process, tell)
        cluster.join(seconds)
        yield cluster
