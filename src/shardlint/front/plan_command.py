"""`shardlint plan`: which layouts would serve a model, or the model of a manifest, on given GPUs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardlint.check import Settings
from shardlint.check.command import read_command
from shardlint.check.facts import DeploymentFacts
from shardlint.check.trying import Trial
from shardlint.deployment import Deployment
from shardlint.facts.hardware import Accelerator, Hardware, Node
from shardlint.facts.hardware_spec import equal_nodes
from shardlint.findings import Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.findings.words import counted
from shardlint.front.failures import CannotRun
from shardlint.layout.overheads import Estimate
from shardlint.layout.traffic import collectives
from shardlint.planning import OBJECTIVES, Candidate, Machines, Objective, Option, Plan, Ranked, plan
from shardlint.planning.candidates import EVERY_NODES, EVERY_SIZE
from shardlint.planning.emitting import KINDS, Kind, NotEmitted, Wanted, emitted
from shardlint.report.plan import LayoutLine, PlanReport, Range, RefusedLine, Warned

if TYPE_CHECKING:
    from shardlint.front.library import DiskLibrary
    from shardlint.front.options import Options

_GPUS = re.compile(r"(?P<name>.+?)\s*:\s*(?P<count>\d+)")
ROUND_LENGTH = 64
"""Tokens: what is advised is a little less than what an estimate holds."""
NO_GPUS = "name the GPUs: --gpus 'H100-80GB:8' --nodes 2, or --hardware 2x8xH100"


def hardware_of(gpus: str, nodes: int, more: Sequence[Accelerator]) -> Hardware:
    """The hardware of `--gpus NAME:COUNT --nodes N`; `more` are cards beside the table. Raises CannotRun for none."""
    match = _GPUS.fullmatch(gpus)
    if match is None:
        raise CannotRun(f"--gpus {gpus}: not NAME:COUNT, such as H100-80GB:8")
    hardware = equal_nodes(match["name"], int(match["count"]), nodes, more)
    if isinstance(hardware, str):
        raise CannotRun(f"--gpus {gpus}: {hardware}")
    return hardware


class Made(NamedTuple):
    """A plan and the facts that it was made from."""

    plan: Plan
    facts: DeploymentFacts


def made_for(deployment: Deployment, library: DiskLibrary, settings: Settings, options: Options) -> Made:
    """The plan for one deployment. Raises CannotRun where it cannot be made."""
    trial = Trial(with_length(deployment, options.max_model_len), library, settings)
    facts = trial.facts({})
    if not facts.engine.laid_out:
        raise CannotRun(f"layouts of {facts.engine.label} are read and not judged")
    machines = machines_of(facts, settings)
    found = plan(trial, machines, objective_of(options), options.requests or 1)
    if isinstance(found, Unknown):
        settle = f"; to settle it: {found.settle_by}" if found.settle_by else ""
        raise CannotRun(found.reason + settle)
    return Made(found, facts)


def deployment_of(model: str, library: DiskLibrary, settings: Settings) -> Deployment:
    """A bare command that serves a model."""
    (deployment,) = read_command(["vllm", "serve", model], library, settings).deployments
    return deployment


def is_manifest(word: str) -> bool:
    """Whether the word names a file or a folder of manifests rather than a model."""
    return word == "-" or os.path.isfile(word) or (os.path.isdir(word) and not _holds_model(word))


def _holds_model(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "config.json"))


def with_length(deployment: Deployment, max_model_len: int | None) -> Deployment:
    """The deployment with another length of its requests."""
    if max_model_len is None:
        return deployment
    length = Located(max_model_len, origin="given", source="--max-model-len")
    return deployment._replace(knobs={**deployment.knobs, "max_model_len": length})


def machines_of(facts: DeploymentFacts, settings: Settings) -> Machines:
    """The nodes to plan for. Raises CannotRun where they are not known or differ."""
    hardware = settings.hardware
    if hardware is not None and len({node.gpus for node in hardware.nodes}) > 1:
        raise CannotRun("a plan is for nodes with equally many GPUs; --hardware names others")
    gpus, nodes = facts.gpus_per_node, facts.nodes
    if isinstance(gpus, Unknown) or isinstance(nodes, Unknown) or gpus.value < 1 or nodes.value < 1:
        raise CannotRun(NO_GPUS)
    return Machines(gpus.value, nodes.value)


def objective_of(options: Options) -> Objective:
    return next((objective for objective in OBJECTIVES if objective == options.objective), "fits")


def emit(made: Made, options: Options) -> str:
    """The manifest of the layout that was chosen. Raises CannotRun where there is none."""
    ranked, facts = made.plan.ranked, made.facts
    if not ranked:
        raise CannotRun("no layout works on these GPUs; without --emit the plan says why")
    if options.choose > len(ranked):
        raise CannotRun(f"--choose {options.choose}: there are {counted(len(ranked), 'layout')} for these GPUs")
    chosen = ranked[options.choose - 1]
    model, length, cards = facts.deployment.model, facts.context_length, facts.accelerators
    wanted = Wanted(
        model=model.value if isinstance(model, Located) else "",
        release=str(facts.engine_version.value),
        ranked=chosen,
        card=cards.value[0].name if isinstance(cards, Located) and len(cards.value) == 1 else "",
        max_model_len=length.value if isinstance(length, Located) else None,
        has_experts=made.plan.situation.has_experts,
        remarks=tuple(_remarks(chosen.option, made.plan.situation.requests)),
    )
    kind: Kind = next(kind for kind in KINDS if kind == options.emit)
    try:
        return emitted(kind, wanted)
    except NotEmitted as reason:
        raise CannotRun(f"--emit {kind}: {reason}") from reason


def _remarks(option: Option, requests: int) -> Iterator[str]:
    if missing := _missing(option, requests):
        yield missing
    yield from (f"shardlint warns of it: {each.code} {each.rule}: {each.message}" for each in option.warnings)


def reported(made: Made, settings: Settings) -> PlanReport:
    """A plan in the words of its report."""
    found, facts = made
    model, length = facts.deployment.model, facts.context_length
    return PlanReport(
        model=model.value if isinstance(model, Located) else "",
        engine=facts.label,
        hardware=_hardware(found.machines, facts, settings),
        objective=found.objective,
        max_model_len=length.value if isinstance(length, Located) else None,
        requests=found.situation.requests,
        missed=_missed(found),
        layouts=tuple(_line(item, found, facts) for item in found.ranked),
        refused=tuple(_refused(found)),
        assumptions=tuple(_assumptions(found, facts)),
    )


def _hardware(machines: Machines, facts: DeploymentFacts, settings: Settings) -> str:
    nodes = "1 node" if machines.nodes == 1 else f"{machines.nodes} nodes"
    cards = facts.accelerators
    names = {card.name for card in cards.value} if isinstance(cards, Located) else {"GPU of unknown kind"}
    if isinstance(settings.hardware, Hardware) and _is_mixed(settings.hardware.nodes):
        names = {"+".join(f"{count}x{card.name}" for count, card in settings.hardware.nodes[0].cards)}
        return f"{nodes} of {', '.join(sorted(names))}"
    return f"{nodes} of {machines.gpus_per_node} x {' or '.join(sorted(names))}"


def _is_mixed(nodes: tuple[Node, ...]) -> bool:
    return any(len(node.cards) > 1 for node in nodes)


def _missed(found: Plan) -> str:
    """Where layouts work and none holds what was asked for: what would."""
    asked, best = found.situation.requests, found.ranked[0].option if found.ranked else None
    if best is None or found.holds_what_is_asked:
        return ""
    wanted = counted(asked, "request")
    length = best.memory.max_model_len if best.memory is not None else 0
    shorter = max(item.option.shorter(asked) for item in found.ranked) // ROUND_LENGTH * ROUND_LENGTH
    advice = [f"requests of up to about {shorter} tokens (--max-model-len {shorter})"] if shorter else []
    if best.holds:
        nodes = found.machines.nodes * math.ceil(asked / best.holds)
        advice.append(f"{nodes} such nodes, with more replicas of no. 1 (--nodes {nodes})")
    would = f"; what would: {', or '.join(advice)}" if advice else ""
    return f"no layout holds {wanted} of {length} tokens at once on these GPUs: the most is {best.holds:.0f}{would}"


def _missing(option: Option, requests: int) -> str:
    """By how much a layout misses what was asked for."""
    missing, held = option.missing(requests), option.per_replica
    if not missing or held is None:
        return ""
    if option.holds:
        return f"too little: it likely holds {option.holds:.0f} requests at once, {missing:.0f} fewer than asked for"
    low, likely, high = (f"{each:.2f}" for each in held)
    return f"too little: a replica likely holds {likely} of one request ({low} to {high}), and runs none in parts"


def _line(item: Ranked, found: Plan, facts: DeploymentFacts) -> LayoutLine:
    option, candidate = item.option, item.option.candidate
    tokens, requests = option.tokens, option.requests
    weights = [rank.weight_bytes for rank in option.layout.ranks if rank.weight_bytes] if option.layout else []
    return LayoutLine(
        tensor_parallel_size=candidate.tensor_parallel_size,
        pipeline_parallel_size=candidate.pipeline_parallel_size,
        data_parallel_size=candidate.data_parallel_size,
        enable_expert_parallel=candidate.enable_expert_parallel,
        decode_context_parallel_size=candidate.decode_context_parallel_size,
        nodes_per_replica=candidate.nnodes,
        gpus=candidate.world_size,
        idle_gpus=option.idle_gpus,
        flags=candidate.flags(),
        reasons=(item.why,),
        warnings=tuple(Warned(finding.code, finding.rule, finding.message) for finding in option.warnings),
        missing=_missing(option, found.situation.requests),
        weight_bytes_per_gpu=max(weights, default=None),
        kv_bytes_per_gpu=_range(option.memory.tightest().kv) if option.memory else None,
        kv_tokens=_range(tokens) if tokens is not None else None,
        requests=_range(requests) if requests is not None else None,
        bytes_sent_per_token=_sent(option, facts),
        unknown=option.memory_unknown,
    )


def _range(estimate: Estimate) -> Range:
    return Range(*(max(0.0, float(each)) for each in estimate))


def _sent(option: Option, facts: DeploymentFacts) -> int | None:
    """Bytes that each token adds to the all-reduces of the stage with most of them."""
    rows, hidden, layout = facts.rows, facts.answer("hidden_size"), option.layout
    if isinstance(rows, Unknown) or isinstance(hidden, Unknown) or layout is None or not layout.stages:
        return None
    stages: dict[int, int] = {}
    for each in collectives(layout.sizes, rows, layout.stages, hidden.value):
        if each.operation == "all-reduce" and each.group == "tp":
            stages[each.stage] = stages.get(each.stage, 0) + each.count * each.message_bytes(1, 0, 2)
    return max(stages.values(), default=0)


def _refused(found: Plan) -> Iterator[RefusedLine]:
    """Those that do not work, the layouts of one reason together; for lack of memory, with the first one's sum."""
    grouped: dict[str, list[tuple[str, str]]] = {}
    for option in found.refused:
        first = option.refusals[0]
        reason = first.rule if first.family == "memory" else first.message
        grouped.setdefault(reason, []).append((words_of(option.candidate), first.message))
    for each in grouped.values():
        yield RefusedLine(tuple(layout for layout, _ in each), each[0][1])


def words_of(candidate: Candidate) -> str:
    """A layout in few words: `TP 8 x PP 2`."""
    sizes = [
        (f"TP {candidate.tensor_parallel_size}", candidate.tensor_parallel_size > 1 or candidate.world_size == 1),
        (f"PP {candidate.pipeline_parallel_size}", candidate.pipeline_parallel_size > 1),
        (f"DP {candidate.data_parallel_size}", candidate.data_parallel_size > 1),
        (f"DCP {candidate.decode_context_parallel_size}", candidate.decode_context_parallel_size > 1),
    ]
    expert = " with EP" if candidate.enable_expert_parallel else ""
    return " x ".join(word for word, is_said in sizes if is_said) + expert


def _assumptions(found: Plan, facts: DeploymentFacts) -> Iterator[str]:
    version, length = facts.engine_version, facts.context_length
    if version.origin == "default":
        yield f"{facts.label}: {version.source}"
    if isinstance(length, Located) and length.origin != "given":
        yield f"requests of {length.value} tokens, {length.source or 'as written'}; --max-model-len says otherwise"
    if found.situation.fast_link is None and found.machines.gpus_per_node > 1:
        yield "how the GPUs of a node are joined is not known, and so has no part in the order"
    if found.machines.nodes > EVERY_NODES:
        yield f"a replica on more than {EVERY_NODES} nodes is tried where its nodes divide {found.machines.nodes}"
    if found.machines.gpus_per_node > EVERY_SIZE:
        gpus = found.machines.gpus_per_node
        yield f"a replica of more than {EVERY_SIZE} GPUs of a node is tried where its GPUs divide {gpus}"
    share = facts.knob("gpu_memory_utilization")
    if isinstance(share, Located):
        yield f"gpu_memory_utilization {share.value}"
