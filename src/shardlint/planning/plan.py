"""From a deployment and its machines to the layouts that would serve it."""

from __future__ import annotations

from shardlint.check.facts import DeploymentFacts
from shardlint.check.trying import Trial
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.planning.candidates import Machines, candidates
from shardlint.planning.ranking import Objective, Ranked, Situation, rank
from shardlint.planning.weighing import Option, has_fast_link, weigh

MOST_GPUS = 1024
"""Of the machines: with more there are thousands of layouts, and their differences are known from fewer."""

SPARE = 0.85
"""Share of the usable memory that weights may take where nothing else is known: the rest is for cache and buffers."""


class Plan(NamedTuple):
    """The layouts that work, the best first, and those that do not."""

    machines: Machines
    objective: Objective
    ranked: tuple[Ranked, ...]
    refused: tuple[Option, ...]
    situation: Situation

    @property
    def holds_what_is_asked(self) -> bool:
        """Whether a layout likely holds the requests at once that were asked for, or is not known to hold fewer."""
        return any(not item.option.missing(self.situation.requests) for item in self.ranked)


def plan(trial: Trial, machines: Machines, objective: Objective = "fits", requests: int = 1) -> Plan | Unknown:
    """All layouts of the trial's deployment on these machines; Unknown where the model is not known."""
    if machines.gpus > MOST_GPUS:
        return Unknown(f"a plan is for at most {MOST_GPUS} GPUs, and these are {machines.gpus}")
    facts = trial.facts({})
    if isinstance(facts.geometry, Unknown):
        return facts.geometry
    has_experts = bool(_number(facts.answer("num_experts")))
    found = candidates(
        machines,
        layers=_number(facts.answer("num_hidden_layers")),
        has_experts=has_experts,
        key_value_heads=_cache_heads(facts),
    )
    options = [weigh(candidate, machines, trial.of(candidate.knobs())) for candidate in found]
    cards = facts.accelerators.value if isinstance(facts.accelerators, Located) else ()
    situation = Situation(
        machines=machines,
        size_known=any(option.memory for option in options) or not isinstance(facts.least_weights, Unknown),
        least_gpus=_least(trial, options),
        widest=max(
            (option.candidate.tensor_parallel_size for option in options if _is_inside_a_node(option)), default=None
        ),
        node_divides=any(
            option.candidate.tensor_parallel_size == machines.gpus_per_node and not option.is_refused_for_its_shape
            for option in options
        ),
        has_experts=has_experts,
        fast_link=has_fast_link(cards, machines.gpus_per_node),
        requests=requests,
    )
    refused = tuple(option for option in options if option.is_refused)
    return Plan(machines, objective, rank(options, situation, objective), refused, situation)


def _is_inside_a_node(option: Option) -> bool:
    works = not option.is_refused and option.holds >= 1
    return works and option.candidate.pipeline_parallel_size == 1 and not option.crosses_nodes


def _least(trial: Trial, options: list[Option]) -> int | None:
    """GPUs of the smallest replica that likely holds a request by itself, its experts not spread over other copies."""
    by_size = sorted((option.candidate for option in options), key=lambda candidate: candidate.replica_size)
    for candidate in by_size:
        plain = not candidate.enable_expert_parallel and candidate.decode_context_parallel_size == 1
        if plain and _holds(trial.facts(candidate.one_copy.knobs())):
            return candidate.replica_size
    return None


def _holds(facts: DeploymentFacts) -> bool:
    """Whether one request of the full length likely fits; where the memory is not known, whether the weights may."""
    memory, layout = facts.memory, facts.layout
    if isinstance(layout, Unknown) or layout.refused:
        return False
    if isinstance(memory, Unknown):
        return _may_hold_weights(facts)
    sequences = memory.value.sequences()
    return sequences is None or sequences.likely >= 1


def _may_hold_weights(facts: DeploymentFacts) -> bool:
    least, cards, share = facts.least_weights, facts.accelerators, facts.knob("gpu_memory_utilization")
    if isinstance(least, Unknown) or isinstance(cards, Unknown) or not isinstance(share, Located):
        return False
    room = [card.memory_bytes for card in cards.value if card.memory_bytes is not None]
    return bool(room) and least.value.fullest_rank_bytes < SPARE * share.value * min(room)


def _cache_heads(facts: DeploymentFacts) -> int | None:
    """KV heads that tensor parallelism can split; a latent cache is one head."""
    latent = facts.answer("is_mla")
    return 1 if isinstance(latent, Located) and latent.value else _number(facts.answer("fewest_key_value_heads"))


def _number(fact: Maybe[int] | None) -> int | None:
    return fact.value if isinstance(fact, Located) and isinstance(fact.value, int) else None
