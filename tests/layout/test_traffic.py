"""Collectives of a step: the documents' numbers, and what experts change."""

from __future__ import annotations

from layout_models import LLAMA_8B, LLAMA_70B, QWEN3_8B, VLLM, geometry

from shardlint.architectures import Rows, rows_of
from shardlint.layout import Sizes, lay_out
from shardlint.layout.traffic import Collective, collectives

MIB = 2**20
TOKENS = 2048


def of(config: dict[str, object], **sizes: int | bool) -> tuple[Collective, ...]:
    model = geometry(config)
    rows = rows_of(model)
    assert isinstance(rows, Rows)
    wanted = Sizes(**sizes)  # type: ignore[arg-type]
    stages = lay_out(wanted, model, VLLM).stages
    return collectives(wanted, rows, stages, config["hidden_size"], config["vocab_size"])  # type: ignore[arg-type]


def by_purpose(found: tuple[Collective, ...], purpose: str) -> list[tuple[int, str, int, int]]:
    return [
        (each.stage, each.operation, each.count, each.message_bytes(TOKENS, 1, 2) // MIB)
        for each in found
        if each.purpose == purpose
    ]


def test_llama_8b_at_tp_2_does_64_all_reduces_of_16_mib() -> None:
    assert by_purpose(of(LLAMA_8B, tensor_parallel_size=2), "layer") == [(0, "all-reduce", 64, 16)]
    assert by_purpose(of(LLAMA_8B, tensor_parallel_size=16), "layer") == [(0, "all-reduce", 64, 16)]


def test_one_rank_sends_nothing() -> None:
    assert of(LLAMA_8B) == ()


def test_llama_8b_at_pp_2_sends_32_mib_over_the_boundary() -> None:
    found = of(LLAMA_8B, pipeline_parallel_size=2)
    assert by_purpose(found, "boundary") == [(0, "send", 1, 32)]
    assert by_purpose(found, "layer") == []


def test_llama_70b_at_tp_8_pp_2() -> None:
    found = of(LLAMA_70B, tensor_parallel_size=8, pipeline_parallel_size=2)
    assert by_purpose(found, "layer") == [(0, "all-reduce", 80, 32), (1, "all-reduce", 80, 32)]
    assert by_purpose(found, "boundary") == [(0, "send", 1, 64)]


def test_the_first_stage_adds_the_embedding_and_the_last_gathers_logits_of_sequences() -> None:
    found = of(QWEN3_8B, tensor_parallel_size=2, pipeline_parallel_size=2)
    assert [each.stage for each in found if each.purpose == "embedding"] == [0]
    (logits,) = [each for each in found if each.purpose == "logits"]
    assert (logits.stage, logits.group, logits.message_bytes(TOKENS, 3, 2)) == (1, "tp", 3 * 151936 * 2)


MOE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [0],
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}


def kinds(found: tuple[Collective, ...]) -> list[tuple[str, str, str, int]]:
    return [(each.operation, each.group, each.purpose, each.count) for each in found if each.purpose != "logits"]


def test_experts_of_data_parallel_ranks_gather_and_scatter_tokens() -> None:
    assert kinds(of(MOE, data_parallel_size=2, enable_expert_parallel=True)) == [
        ("all-gather", "dp", "dispatch", 3),
        ("reduce-scatter", "dp", "combine", 3),
    ]
    assert kinds(of(MOE, tensor_parallel_size=2, data_parallel_size=2, enable_expert_parallel=True)) == [
        ("all-reduce", "tp", "embedding", 1),
        ("all-reduce", "tp", "layer", 5),
        ("all-gather", "ep", "dispatch", 3),
        ("reduce-scatter", "ep", "combine", 3),
        ("all-gather", "tp", "sequence", 3),
    ]
    assert kinds(of(MOE, tensor_parallel_size=2, enable_expert_parallel=True)) == [
        ("all-reduce", "tp", "embedding", 1),
        ("all-reduce", "tp", "layer", 8),
    ]
