"""Plans: which layouts there are, which are refused, and the decision table's order."""

from __future__ import annotations

import math

import pytest

from shardlint.check import Settings
from shardlint.check.command import OneModel, read_command
from shardlint.check.trying import Trial
from shardlint.facts import hardware_spec
from shardlint.facts.hardware import Hardware
from shardlint.planning import OBJECTIVES, Candidate, Machines, Objective, Plan, plan
from shardlint.planning.candidates import candidates

DENSE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
SMALL = DENSE | {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
EXPERTS = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def planned(config: dict[str, object], spec: str, objective: Objective = "fits", flags: str = "") -> Plan:
    hardware = hardware_spec.parse(spec)
    assert isinstance(hardware, Hardware)
    settings, library = Settings(hardware=hardware), OneModel(config, None)
    (deployment,) = read_command(f"vllm serve some/model {flags}", library, settings).deployments
    found = plan(Trial(deployment, library, settings), Machines(hardware.nodes[0].gpus, len(hardware.nodes)), objective)
    assert isinstance(found, Plan)
    return found


def first(config: dict[str, object], spec: str, objective: Objective = "fits", flags: str = "") -> tuple[int, ...]:
    return planned(config, spec, objective, flags).ranked[0].option.candidate[:3]


@pytest.mark.parametrize(
    ("config", "spec", "objective", "wanted"),
    [
        (SMALL, "8xH100", "fits", (1, 1, 8)),
        (SMALL, "8xH100", "throughput", (1, 1, 8)),
        (SMALL, "8xH100", "latency", (8, 1, 1)),
        (DENSE, "8xH100", "fits", (8, 1, 1)),
        (DENSE, "2x8xA100 40GB", "latency", (8, 1, 2)),
        (DENSE, "4x2xA100 40GB", "fits", (2, 4, 1)),
        (DENSE, "8xL4", "fits", (1, 8, 1)),
        (DENSE, "5xH100", "fits", (1, 5, 1)),
        (EXPERTS, "8xH200", "throughput", (1, 1, 8)),
    ],
)
def test_the_decision_table(
    config: dict[str, object], spec: str, objective: Objective, wanted: tuple[int, ...]
) -> None:
    assert first(config, spec, objective) == wanted


def test_refused_layouts_say_why() -> None:
    found = planned(SMALL, "6xH100")
    reasons = {option.candidate[:3]: option.refusals[0].message for option in found.refused}
    assert "32 attention heads do not divide by the tensor parallel size 6" in reasons[(6, 1, 1)]
    assert all(not item.option.is_refused for item in found.ranked)


def test_a_model_that_fits_nowhere_leaves_nothing() -> None:
    found = planned(DENSE, "1xL4")
    assert found.ranked == ()
    assert [option.candidate[:3] for option in found.refused] == [(1, 1, 1)]


TIGHT = DENSE | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}
"""One GPU of 80 GB has room for its weights and for most of one request of its length."""


def test_requests_are_counted_whole_in_each_replica() -> None:
    for item in planned(TIGHT, "2x8xH100", "throughput").ranked:
        held, all_held = item.option.per_replica, item.option.requests
        assert held is not None and all_held is not None
        copies = item.option.candidate.data_parallel_size
        assert all_held == tuple(math.floor(each) * copies for each in held)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_layout_whose_replicas_hold_no_whole_request_comes_last(objective: Objective) -> None:
    found = planned(TIGHT, "2x8xH100", objective)
    last = found.ranked[-1].option
    assert last.per_replica is not None and 0 < last.per_replica.likely < 1 < last.per_replica.likely * 16
    assert (last.candidate[:3], last.holds) == ((1, 1, 16), 0)
    assert all(item.option.holds >= 1 for item in found.ranked[:-1])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("config", "spec"),
    [(TIGHT, "2x8xH100"), (TIGHT, "8xH100"), (SMALL, "6xH100"), (EXPERTS, "2x8xH100"), (DENSE, "8xL40S")],
)
def test_a_reason_says_what_is_so(config: dict[str, object], spec: str, objective: Objective) -> None:
    found = planned(config, spec, objective)
    least, per_node = found.situation.least_gpus, found.machines.gpus_per_node
    inside = [
        item.option.candidate
        for item in found.ranked
        if item.option.holds >= 1
        and item.option.candidate.pipeline_parallel_size == 1
        and not item.option.crosses_nodes
    ]
    for option, why in found.ranked:
        size, tensor = option.candidate.replica_size, option.candidate.tensor_parallel_size
        assert not why.startswith("replicas of ") or (least is not None and size > least)
        assert not why.startswith("copies of the smallest") or (
            size == least and option.candidate.data_parallel_size > 1
        )
        assert not why.startswith("the widest") or tensor == max(each.tensor_parallel_size for each in inside)
        assert not why.startswith("the model fits one node") or (least is not None and least <= per_node)
        assert not why.startswith("the model fits no") or least is None or least > per_node
        assert not why.startswith("the number of GPUs does not divide") or tensor == 1


def test_every_candidate_fits_its_machines_and_is_listed_once() -> None:
    for machines in (Machines(1, 1), Machines(6, 1), Machines(4, 3), Machines(8, 2)):
        found = list(candidates(machines, layers=32, has_experts=True, key_value_heads=2))
        assert len(found) == len(set(found))
        assert all(each.world_size <= machines.gpus for each in found)
        assert all(each.nnodes * machines.gpus_per_node >= each.replica_size for each in found)
        assert Candidate(1, 1, machines.gpus, 1, data_parallel_size_local=found[0].data_parallel_size_local) in found


def test_context_parallelism_is_offered_only_where_kv_heads_are_held_twice() -> None:
    contexts = {
        (each.tensor_parallel_size, each.decode_context_parallel_size)
        for each in candidates(Machines(8, 1), layers=32, has_experts=False, key_value_heads=4)
    }
    assert {(8, 1), (8, 2), (4, 1)} <= contexts
    assert (4, 2) not in contexts
