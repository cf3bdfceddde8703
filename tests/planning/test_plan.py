"""Plans: which layouts there are, which are refused, and the decision table's order."""

from __future__ import annotations

import pytest

from shardlint.check import Settings
from shardlint.check.command import OneModel, read_command
from shardlint.check.trying import Trial
from shardlint.facts import hardware_spec
from shardlint.facts.hardware import Hardware
from shardlint.planning import Candidate, Machines, Objective, Plan, plan
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


def test_layouts_that_hold_too_few_requests_come_last() -> None:
    found = planned(DENSE, "8xH100", flags="--max-model-len 8192")
    holds = [item.option.holds for item in found.ranked]
    assert min(holds) >= 1


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
