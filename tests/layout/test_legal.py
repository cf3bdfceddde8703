"""Legal values of one degree, the others fixed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_models import LLAMA_8B, MIXTRAL, QWEN3_8B, VLLM, geometry

from shardlint.findings import Unknown
from shardlint.layout import Sizes, lay_out, legal_values


def test_values_are_bounded_by_the_gpus_that_the_other_degrees_leave() -> None:
    legal = legal_values(Sizes(8, 2), geometry(LLAMA_8B), VLLM, gpus=16)
    assert legal.values("tensor_parallel_size") == (1, 2, 4, 8)
    assert legal.values("pipeline_parallel_size") == (1, 2)
    assert legal.values("data_parallel_size") == (1,)


def test_nothing_is_legal_beside_degrees_that_need_more_gpus_already() -> None:
    legal = legal_values(Sizes(1, 4), geometry(LLAMA_8B), VLLM, gpus=2)
    assert legal.values("tensor_parallel_size") == ()


def test_stages_are_bounded_by_the_layers() -> None:
    legal = legal_values(Sizes(), geometry(QWEN3_8B), VLLM)
    assert legal.values("pipeline_parallel_size") == tuple(range(1, 37))


def test_each_value_that_fails_names_its_piece() -> None:
    legal = legal_values(Sizes(6), geometry(LLAMA_8B, num_key_value_heads=4), VLLM, gpus=8)
    failures = {value: str(uneven) for value, uneven in legal.failures("tensor_parallel_size")}
    assert failures == {
        3: "32 query heads do not divide by 3",
        5: "32 query heads do not divide by 5",
        6: "32 query heads do not divide by 6",
        7: "32 query heads do not divide by 7",
    }


def test_the_vocabulary_decides_where_the_heads_would_do() -> None:
    seven_heads = geometry(QWEN3_8B, num_attention_heads=28, num_key_value_heads=28, intermediate_size=12544)
    legal = legal_values(Sizes(), seven_heads, VLLM, gpus=8)
    assert legal.values("tensor_parallel_size") == (1, 2, 4)
    assert legal.fault("tensor_parallel_size", 7).piece == "vocabulary"


def test_data_parallel_replicas_cut_the_experts_of_a_mixture() -> None:
    legal = legal_values(Sizes(), geometry(MIXTRAL), VLLM, gpus=8)
    assert legal.values("data_parallel_size") == (1, 2, 4, 7, 8)  # 14336 = 2^11 x 7
    with_experts = legal_values(Sizes(enable_expert_parallel=True), geometry(MIXTRAL), VLLM, gpus=8)
    assert with_experts.values("data_parallel_size") == tuple(range(1, 9))


def test_the_nearest_comes_first_and_the_larger_of_two() -> None:
    legal = legal_values(Sizes(6), geometry(LLAMA_8B), VLLM, gpus=8)
    assert legal.nearest("tensor_parallel_size", 6) == (8, 4, 2, 1)


def test_of_an_undescribed_family_the_heads_are_asked() -> None:
    legal = legal_values(Sizes(), geometry(LLAMA_8B, architectures=["NewForCausalLM"]), VLLM, gpus=8)
    assert legal.basis == "heads, KV heads and vocabulary only"
    assert legal.values("tensor_parallel_size") == (1, 2, 4, 8)


def test_of_an_unknown_model_only_the_gpus_count() -> None:
    legal = legal_values(Sizes(3), Unknown("no such model"), VLLM, gpus=4)
    assert legal.basis == "the GPUs only"
    assert legal.values("tensor_parallel_size") == (1, 2, 3, 4)


@pytest.mark.parametrize("size", [0, -8, 10**9])
def test_a_hostile_size_does_not_hinder_the_others(size: int) -> None:
    legal = legal_values(Sizes(size), geometry(LLAMA_8B), VLLM, gpus=8)
    assert legal.values("tensor_parallel_size") == (1, 2, 4, 8)


@given(
    heads=st.integers(1, 96),
    kv_heads=st.integers(1, 96),
    width=st.integers(1, 20_000),
    vocabulary=st.integers(1, 300_000),
    gpus=st.integers(1, 64),
)
def test_legal_values_cut_evenly_and_no_others_do(
    heads: int, kv_heads: int, width: int, vocabulary: int, gpus: int
) -> None:
    model = geometry(
        LLAMA_8B,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=8,
        intermediate_size=width,
        vocab_size=vocabulary,
    )
    legal = legal_values(Sizes(), model, VLLM, gpus=gpus)
    values = legal.values("tensor_parallel_size")
    for value in range(1, min(gpus, heads) + 1):
        layout = lay_out(Sizes(value), model, VLLM)
        assert (value in values) == (layout.refused is None) == (not layout.uneven)
        assert (layout.ranks[0].weight_bytes is not None) == (value in values)
