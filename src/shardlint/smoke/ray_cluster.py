"""The process that joins a Ray cluster: `main(report, folder)`. It has a supervisor run on each node that holds ranks.

The ranks are placed as vLLM 0.33.0 places them: a bundle for each, packed; sorted by node, this process's own first and
then by the nodes' ids, which are random (v1/executor/ray_utils.py). The GPUs of a node are those that Ray gave to its
bundles, in the order of their numbers, and a rank has the one of its place in the node (ray_executor_v2.py).
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from shardlint.smoke import surroundings
from shardlint.smoke.conversation import listen_on
from shardlint.smoke.job import Seat
from shardlint.smoke.node import CannotTry, Tell
from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan
from shardlint.smoke.precheck import OWN_OF_A_NODE
from shardlint.smoke.result import SmokeResult
from shardlint.smoke.supervise import run
from shardlint.smoke.trial import Trial

Bundle = dict[str, float]
GPU: Bundle = {"GPU": 1}
CPU: Bundle = {"CPU": 0.01}
"""What a rank is given. Without GPUs it is only counted: the ranks are processes of their supervisor."""

POLL_SECONDS = 1  # Ray counts in whole ones
GRACE_SECONDS = 10.0
"""Once one supervisor is done, for node 0 to say what became of the run, and for the others to end their ranks."""


class Supervisor:
    """What Ray starts in the bundles of a node: the first one supervises the ranks of all of them."""

    def __init__(self) -> None:
        self._door: socket.socket | None = None

    def gpus(self) -> list[str]:
        """The GPU of this bundle, by its word in CUDA_VISIBLE_DEVICES; nobody else is told which it is."""
        return list(map(str, ray.get_runtime_context().get_accelerator_ids().get("GPU", ())))

    def open_door(self, address: str) -> int:
        """The port on which the other nodes are awaited."""
        self._door = listen_on(address, 0)
        port: int = self._door.getsockname()[1]
        return port

    def supervise(self, words: str) -> str:
        """Run the ranks of this node. JSON both ways: that is all that nodes need to agree on."""
        asked = json.loads(words)
        for name, value in asked["environment"].items():
            os.environ.setdefault(name, value)
        if asked["gpus"]:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(asked["gpus"])  # heeded: torch is imported by a child
        trial = Trial.from_json(asked["trial"])
        trial = trial._replace(around=surroundings.read(os.environ), door=self._door)
        return json.dumps(run(Plan.from_json(asked["plan"]), trial).to_json())


class RayNode(NamedTuple):
    """A node of the cluster that holds ranks: a bundle for each, in their order."""

    name: str
    host: str
    address: str
    bundles: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.host} ({self.address}, Ray node {self.name[:8]})"


def main(report: int, _folder: str) -> None:
    """Join the cluster, say how many GPUs it has, and run there what is then asked for."""
    begun = time.monotonic()
    with os.fdopen(report, "w") as reports:

        def say(**message: Any) -> None:
            reports.write(json.dumps(message) + "\n")
            reports.flush()

        try:
            with _joined():
                gpus = int(ray.cluster_resources().get("GPU", 0))
                say(joined=gpus)
                if line := sys.stdin.readline():
                    asked = json.loads(line)
                    plan, trial = Plan.from_json(asked["plan"]), Trial.from_json(asked["trial"])
                    attempt = Attempt(plan, trial, gpus, begun + trial.deadline_seconds)
                    say(result=attempt.result(lambda told: say(tell=told)).to_json())
        except CannotTry as reason:
            say(cannot=str(reason))


@contextmanager
def _joined() -> Iterator[None]:
    try:
        ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError, RayError) as failure:
        raise CannotTry(f"no Ray cluster can be joined from here: {_lines(failure)[0]}") from failure
    try:
        yield
    finally:
        ray.shutdown()


class Attempt:
    """One plan on the nodes that Ray chooses."""

    def __init__(self, plan: Plan, trial: Trial, gpus: int, limit: float) -> None:
        self.plan = plan
        self.trial = trial
        self.ranks = len(plan.ranks)
        self.bundle = GPU if gpus else CPU
        self.limit = limit
        """When supervisors have to be there, by the clock that only goes forward."""
        if 0 < gpus < self.ranks:
            raise CannotTry(f"the plan needs {self.ranks} GPUs, and the Ray cluster has {gpus}")

    def result(self, tell: Tell) -> SmokeResult:
        """What node 0 says of the run, else another one. Raises CannotTry where none says anything."""
        tell(f"placing {self.ranks} ranks")
        with self._placed() as group:
            nodes = _nodes(group)
            seat = Seat(nodes=len(nodes), held=tuple(len(node.bundles) for node in nodes))
            placement = "; ".join(
                f"{_span(seat.ranks(self.ranks, number))} on {node}" for number, node in enumerate(nodes)
            )
            tell(f"starting supervisors: {placement}")
            result = self._verdict(nodes, self._supervised(group, nodes, seat))
        if result.could_not_run:
            return result._replace(could_not_run=f"{result.could_not_run} ({placement})")
        note = Observation("placement", "note", "", placement)
        return result._replace(observations=(note, *result.observations))

    @contextmanager
    def _placed(self) -> Iterator[Any]:
        """The placement group; whatever still runs in it is ended with it."""
        group = placement_group([self.bundle] * self.ranks, strategy="PACK")
        try:
            if not self._in_time(group.wait):
                what, each = next(iter(self.bundle.items()))
                free, there = (
                    f"{said.get(what, 0):g}" for said in (ray.available_resources(), ray.cluster_resources())
                )
                raise CannotTry(
                    f"the Ray cluster had no room for {self.ranks} bundles of {each:g} {what} within "
                    f"{self.trial.deadline_seconds:g} s: free are {free} of {there} {what}"
                )
            yield group
        finally:
            remove_placement_group(group)

    def _supervised(self, group: Any, nodes: Sequence[RayNode], seat: Seat) -> dict[Any, int]:
        """The nodes by what Ray will bring of them."""
        started = [
            [
                _start(group, bundle, self.bundle)
                for bundle in (node.bundles if "GPU" in self.bundle else node.bundles[:1])
            ]
            for node in nodes
        ]
        gpus = [
            self._answers(node, [supervisor.gpus.remote() for supervisor in supervisors])
            for node, supervisors in zip(nodes, started, strict=True)
        ]
        if len(nodes) > 1:
            address, one_host = nodes[0].address, len({node.address for node in nodes}) == 1
            (port,) = self._answers(nodes[0], [started[0][0].open_door.remote(address)])
            seat = seat._replace(host=address, port=port, together=one_host)
        environment = {
            name: value
            for name, value in surroundings.read(os.environ).environment.items()
            if name not in OWN_OF_A_NODE
        }
        runs = {}
        for number, supervisors in enumerate(started):
            asked = {
                "plan": self.plan.to_json(),
                "trial": self.trial._replace(seat=seat._replace(node=number)).to_json(),
                "environment": environment,
                "gpus": sorted(chain(*gpus[number]), key=lambda word: (len(word), word)),
            }
            runs[supervisors[0].supervise.remote(json.dumps(asked))] = number
        return runs

    def _answers(self, node: RayNode, calls: list[Any]) -> list[Any]:
        if not self._in_time(lambda seconds: not ray.wait(calls, num_returns=len(calls), timeout=seconds)[1]):
            raise CannotTry(f"no supervisor has started on {node} within {self.trial.deadline_seconds:g} s")
        try:
            answers: list[Any] = ray.get(calls)
        except RayError as failure:
            raise CannotTry(f"no supervisor can run on {node}: {_in_words(failure)}") from failure
        return answers

    def _verdict(self, nodes: Sequence[RayNode], runs: dict[Any, int]) -> SmokeResult:
        found: dict[int, SmokeResult] = {}
        failed: dict[int, str] = {}
        pending, until = list(runs), float("inf")
        while pending and 0 not in found and time.monotonic() < until:
            done, pending = ray.wait(pending, timeout=POLL_SECONDS)
            for each in done:
                until = min(until, time.monotonic() + GRACE_SECONDS)
                try:
                    found[runs[each]] = SmokeResult.from_json(self.plan, json.loads(ray.get(each)))
                except RayError as failure:
                    failed[runs[each]] = _in_words(failure)
            _heed_parent()
        if pending:
            ray.wait(pending, num_returns=len(pending), timeout=max(0.0, until - time.monotonic()))
        if found:
            return found[min(found)]
        number = min(failed)
        raise CannotTry(f"the supervisor on {nodes[number]} ended: {failed[number]}")

    def _in_time(self, has_come: Callable[[float], bool]) -> bool:
        """Whether something comes before the supervisors have to be there; it is told how many seconds to wait."""
        while not has_come(POLL_SECONDS):
            _heed_parent()
            if time.monotonic() > self.limit:
                return False
        return True


def _heed_parent() -> None:
    """Nothing is ever said on standard input but what to run: it is closed when nobody wants that any more."""
    if select.select([sys.stdin], [], [], 0)[0]:
        raise CannotTry("nobody wants the run any more")


def _nodes(group: Any) -> list[RayNode]:
    """Those of a placement group, in the order of the ranks."""
    node_of: dict[int, str] = placement_group_table(group)["bundles_to_node_id"]
    own = ray.get_runtime_context().get_node_id()
    known = {node["NodeID"]: (node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in ray.nodes()}
    names = sorted(set(node_of.values()), key=lambda name: (name != own, name))
    return [
        RayNode(name, *known[name], tuple(bundle for bundle in sorted(node_of) if node_of[bundle] == name))
        for name in names
    ]


def _start(group: Any, number: int, bundle: Bundle) -> Any:
    place = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=number)
    gpus, cpus = bundle.get("GPU", 0), bundle.get("CPU", 0)
    return ray.remote(Supervisor).options(num_gpus=gpus, num_cpus=cpus, scheduling_strategy=place).remote()


def _in_words(failure: RayError) -> str:
    """What was raised at the far end, or has become of it: Ray says that last, and then what often is the cause."""
    return _lines(failure)[-1].partition(". ")[0]


def _lines(failure: Exception) -> list[str]:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines or [type(failure).__name__]


def _span(ranks: range) -> str:
    return f"ranks {ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else f"rank {ranks[0]}"
