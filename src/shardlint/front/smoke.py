"""The door to the smoke test: which deployment, on which nodes, and what is printed of its run."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shardlint import smoke
from shardlint.check.facts import DeploymentFacts
from shardlint.check.layouts import layout_of
from shardlint.deployment import Deployment
from shardlint.findings import Located, Unknown
from shardlint.front import signals
from shardlint.front.failures import CannotRun
from shardlint.front.main import complain
from shardlint.front.options import Options
from shardlint.layout import Layout
from shardlint.layout.dtypes import model_element_bytes
from shardlint.layout.memory import Memory
from shardlint.layout.traffic import collectives
from shardlint.smoke import Plan, SmokeResult, Trial, node, ray_process, report, surroundings
from shardlint.smoke.comparison import is_report
from shardlint.smoke.exchanges import PREFILL_TOKENS, Exchange, exchanges
from shardlint.smoke.job import LEVELS, MOST_RANKS_ON_CPU, NowhereToMeet, Seat, launched_hosts, launched_seat
from shardlint.smoke.result import COULD_NOT_RUN
from shardlint.smoke.trial import DEADLINE_SECONDS, STALL_SECONDS


def chosen(deployments: Sequence[Deployment], name: str | None) -> Deployment:
    """The deployment of that name, `Deployment/chat` or `chat` alone where no other is called so; the only one where
    no name is given. Raises CannotRun where that is none, or any of several."""
    named = [deployment for deployment in deployments if name in (None, deployment.name)]
    named = named or [each for each in deployments if name and each.name.partition("/")[2] == name]
    if len(named) == 1:
        return named[0]
    there = ", ".join(deployment.name for deployment in deployments)
    if not deployments:
        raise CannotRun("there is no deployment to try")
    if name is None:
        raise CannotRun(f"there are several deployments; --deployment NAME chooses one: {there}")
    many = f"{len(named)} deployments are" if named else "no deployment is"
    raise CannotRun(f"{many} called {name}; there are: {there}")


def try_out(facts: DeploymentFacts, options: Options) -> tuple[int, str]:
    """Run a deployment's layout; the exit code and what to print. Raises CannotRun where it has none to run, which
    JSON has a record of."""
    try:
        return _tried(facts, options)
    except CannotRun as reason:
        if options.format != "json":
            raise
        data = report.not_planned(str(reason), facts.deployment.name, options.level)
        return COULD_NOT_RUN, json.dumps(data, indent=2, ensure_ascii=False)


def _tried(facts: DeploymentFacts, options: Options) -> tuple[int, str]:
    name = facts.deployment.name
    earlier = _earlier(options.compare)
    tell = _tell if sys.stderr.isatty() else node.silent
    try:
        with signals.raised():
            if options.launch == "ray":
                seat, result = Seat(), _run_in_ray(facts, options, tell)
            else:
                asked = asked_for(facts, options)
                seat, result = asked.trial.seat, smoke.run(asked.plan, asked.trial, tell)
    except signals.Signalled as by:
        how = "interrupted" if by.signal == signal.SIGINT else f"interrupted by {by.signal.name}"
        complain(f"{how}: the ranks are ended, and nothing is proven")
        raise
    if options.format == "json":
        return result.exit_code, json.dumps(report.json_data(result, name, earlier), indent=2, ensure_ascii=False)
    if result.could_not_run:
        raise CannotRun(report.headline(result, name))
    told_by_another = seat.first_gpu > 0  # a process of the same host and launcher
    return result.exit_code, "" if told_by_another else report.text(result, name, earlier).rstrip("\n")


def _run_in_ray(facts: DeploymentFacts, options: Options, tell: node.Tell) -> SmokeResult:
    """What becomes of a layout in the Ray cluster, whose GPUs are counted before the plan is made."""
    if any(said is not None for said in (options.nodes, options.node_rank, options.master)):
        raise CannotRun("--nodes, --node-rank and --master are for Ray to say: they do not go with --launch ray")
    if options.share_gpu:
        raise CannotRun("--share-gpu: the GPUs of a Ray cluster are given to one rank each")
    whole = asked_for(facts, options, {}, sys.maxsize)
    begun = time.monotonic()
    try:
        with ray_process.ray_cluster(whole.trial.deadline_seconds, tell) as cluster:
            asked = asked_for(facts, options, {}, cluster.gpus or MOST_RANKS_ON_CPU)
            result = cluster.run(asked.plan, asked.trial)
    except node.CannotTry as reason:
        return SmokeResult(whole.plan, could_not_run=str(reason))
    return result._replace(seconds=time.monotonic() - begun)  # to join and to be placed take their time too


def emit(facts: DeploymentFacts, options: Options, texts: Mapping[str, str]) -> str:
    """The manifest that tries a deployment in its own surroundings. Raises CannotRun where there is none."""
    from shardlint.smoke import emit as emitting

    deployment, gpus, nodes = facts.deployment, facts.gpus_per_node, facts.nodes
    asked_for(facts, options, {})  # a layout that cannot be tried is not emitted either
    if isinstance(nodes, Unknown) or isinstance(gpus, Unknown):
        unknown = nodes if isinstance(nodes, Unknown) else gpus
        assert isinstance(unknown, Unknown)
        raise CannotRun(f"--emit {options.emit}: {_in_words(unknown)}")
    geometry = facts.geometry
    assert not isinstance(geometry, Unknown)
    model = deployment.model.value if isinstance(deployment.model, Located) else geometry.model_id
    served = emitting.Served(
        deployment.name,
        texts.get(deployment.at.path, ""),
        deployment.at.line,
        nodes.value,
        {model: {"config.json": dict(geometry.raw), **geometry.side_files}},
        options.deadline or DEADLINE_SECONDS,
    )
    kind = next(kind for kind in emitting.KINDS if kind == options.emit)
    try:
        found = emitting.emitted(kind, served, options.image)
    except emitting.NotEmitted as reason:
        raise CannotRun(f"--emit {kind}: {reason}") from reason
    for warning in found.warnings:
        sys.stderr.write(f"shardlint: warning: {warning}\n")
    return found.text.rstrip("\n")


def _tell(line: str) -> None:
    """For somebody at a terminal who waits."""
    sys.stderr.write(f"... {line}\n")


class Asked(NamedTuple):
    """What is to be run, and how."""

    plan: Plan
    trial: Trial


def asked_for(
    facts: DeploymentFacts, options: Options, environment: Mapping[str, str] = os.environ, devices: int | None = None
) -> Asked:
    """The plan of a deployment and its trial. Raises CannotRun where there is no plan, or no such node.

    `devices` is how many ranks there may be; None: those of this host, on as many hosts as there are nodes.
    """
    name = facts.deployment.name
    if not facts.engine.laid_out:
        raise CannotRun(f"{name} cannot be tried: how {facts.engine.label} lays out its ranks is not known")
    around = surroundings.read(environment)
    own = 0 if options.share_gpu else len(around.gpus) * _hosts(options, environment)
    devices = devices or own or MOST_RANKS_ON_CPU
    layout, left_out = _for_devices(facts, devices)
    memory = _memory(facts) if options.allocate and not left_out else None
    plan = (
        layout
        if isinstance(layout, Unknown)
        else smoke.plan_of(
            layout,
            facts.geometry,
            dtype=_word(facts, "dtype"),
            interleave=_interleave(facts),
            memory=memory,
            rows=facts.rows,
            quantization=_word(facts, "quantization"),
        )
    )
    if isinstance(plan, Unknown) or isinstance(layout, Unknown):
        assert isinstance(plan, Unknown)
        raise CannotRun(f"{name} cannot be tried: {_in_words(plan)}")
    plan = plan._replace(untried=(*plan.untried, *left_out))
    trial = Trial(
        seat=seat_of(options, environment, len(plan.ranks)),
        level=next(level for level in LEVELS if level == options.level),
        around=around,
        exchanges=_exchanges(facts, layout),
        planned_nodes=tuple(rank.node for rank in layout.ranks),
        deadline_seconds=options.deadline or DEADLINE_SECONDS,
        stall_seconds=options.stall or STALL_SECONDS,
        share_gpu=options.share_gpu,
        against_vllm=options.against_vllm,
    )
    return Asked(plan, trial)


def _hosts(options: Options, environment: Mapping[str, str]) -> int:
    try:
        return options.nodes or launched_hosts(environment)
    except ValueError:  # which is told where the seat is asked for
        return 1


def _for_devices(facts: DeploymentFacts, devices: int) -> tuple[Layout | Unknown, tuple[str, ...]]:
    """The largest faithful part of the layout, and what it leaves out.

    Replicas do alike, so the fewer of them still show what all do; no other degree is ever changed.
    """
    layout = facts.layout
    if isinstance(layout, Unknown) or layout.sizes.world_size <= devices:
        return layout, ()
    sizes = layout.sizes
    fewer = max(1, devices // sizes.replica_size)
    if fewer >= sizes.data_parallel_size:
        return layout, ()
    part = layout_of(facts, (sizes.tensor_parallel_size, fewer))
    return part, (f"data_parallel_size {sizes.data_parallel_size} (tried with {fewer})",)


def seat_of(options: Options, environment: Mapping[str, str], ranks: int) -> Seat:
    """Which node this is: as the options say, else as a launcher says. Raises CannotRun for one that there is not."""
    if options.nodes is None:
        if options.node_rank is not None or options.master is not None:
            raise CannotRun("--node-rank and --master go with --nodes N")
        try:
            seat = launched_seat(environment, ranks) or Seat()
        except NowhereToMeet as reason:
            raise CannotRun(str(reason)) from reason
        except ValueError as failure:
            raise CannotRun(f"what a launcher has set is of no use: {failure}") from failure
    elif options.nodes == 1:
        seat = Seat()
    else:
        host, _colon, port = (options.master or "").rpartition(":")
        if options.node_rank is None or not host or not port.isdecimal():
            raise CannotRun("--nodes N goes with --node-rank I, from 0 on, and --master HOST:PORT, that of node 0")
        seat = Seat(options.node_rank, options.nodes, host.strip("[]"), int(port))
    if seat.node >= seat.nodes:
        raise CannotRun(f"there is no node {seat.node} among {seat.nodes}: they count from 0")
    if seat.nodes > 1 and not 0 < seat.port < 2**16:
        raise CannotRun(f"{seat.port} is no port for nodes to meet at: they go from 1 to 65535")
    if ranks % seat.nodes:
        who = "nodes that run it" if options.nodes else "processes that a launcher has started"
        raise CannotRun(f"the plan needs {ranks} ranks, which do not divide by the {seat.nodes} {who}")
    return seat


def _exchanges(facts: DeploymentFacts, layout: Layout) -> tuple[Exchange, ...]:
    """What the ranks send each other in a step; none where the model's rows are not known."""
    rows, geometry = facts.rows, facts.geometry
    if isinstance(rows, Unknown) or isinstance(geometry, Unknown):
        return ()
    hidden, vocabulary = geometry.facts["hidden_size"], geometry.value("vocab_size")
    element_bytes = model_element_bytes(geometry, _word(facts, "dtype"))
    if not isinstance(hidden, Located) or isinstance(element_bytes, Unknown):
        return ()
    batch = facts.knob("max_num_batched_tokens")
    tokens = batch.value if isinstance(batch, Located) and batch.value > 1 else PREFILL_TOKENS
    found = collectives(layout.sizes, rows, layout.stages, hidden.value, vocabulary)
    return exchanges(found, element_bytes, tokens)


def _memory(facts: DeploymentFacts) -> Memory:
    """What the ranks are to take. Raises CannotRun where that is not known."""
    memory = facts.memory
    if isinstance(memory, Unknown):
        raise CannotRun(f"--allocate: what the ranks of {facts.deployment.name} take is not known: {_in_words(memory)}")
    return memory.value


def _interleave(facts: DeploymentFacts) -> int | None:
    for name in ("cp-kv-cache-interleave-size", "dcp-kv-cache-interleave-size"):
        written = facts.deployment.engine_fields.get(name)
        if isinstance(written, Located) and isinstance(written.value, int):
            return written.value
    return None


def _word(facts: DeploymentFacts, knob: str) -> str | None:
    written = facts.knob(knob)
    return written.value if isinstance(written, Located) else None


def _earlier(path: str | None) -> dict[str, Any] | None:
    """The JSON of an earlier run. Raises CannotRun where there is none."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as failure:
        raise CannotRun(f"--compare {path}: {failure.strerror or failure}") from failure
    except (ValueError, RecursionError):  # no JSON, or JSON that goes deeper than any report
        data = None
    if not isinstance(data, dict) or data.get("schema") != report.SCHEMA or not is_report(data):
        raise CannotRun(f"--compare {path}: no report of an earlier run (`shardlint smoke --format json` writes one)")
    return data


def _in_words(unknown: Unknown) -> str:
    return f"{unknown.reason}; to settle it: {unknown.settle_by}" if unknown.settle_by else unknown.reason
