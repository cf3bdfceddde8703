"""What a layout says of models that are not known, and of sizes that nobody has GPUs for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_models import GLM_5, LLAMA_8B, MIXTRAL, QWEN3_8B, VLLM, geometry

from shardlint.facts import Accelerator
from shardlint.findings import Unknown
from shardlint.layout import MOST_RANKS, Layout, Sizes, lay_out


def weights(layout: Layout) -> list[int | None]:
    return [rank.weight_bytes for rank in layout.ranks]


def test_of_an_unknown_model_there_are_ranks_and_a_reason() -> None:
    unknown = Unknown("a/model is not known", settle_by="--models")
    layout = lay_out(Sizes(2, 2), unknown, VLLM, gpus_per_node=2)
    assert layout.unknown == "a/model is not known; --models"
    assert layout.refused is None
    assert [rank.node for rank in layout.ranks] == [0, 0, 1, 1]
    assert weights(layout) == [None] * 4
    assert layout.ranks[0].layers is None
    assert layout.ranks[0].kv_bytes(1) is None


def test_an_undescribed_family_still_has_stages_and_heads() -> None:
    layout = lay_out(Sizes(3, 2), geometry(LLAMA_8B, architectures=["NewForCausalLM"]), VLLM)
    assert layout.unknown is not None
    assert layout.unknown.startswith("the weights of NewForCausalLM are not described")
    assert layout.refused == "32 query heads do not divide by 3"
    assert layout.ranks[-1].layers == (16, 32)


def test_a_quantised_checkpoint_keeps_its_caches() -> None:
    layout = lay_out(Sizes(2), geometry(LLAMA_8B, quantization_config={"quant_method": "awq", "bits": 4}), VLLM)
    assert "group_size of the quantisation config is None" in (layout.unknown or "")
    assert weights(layout) == [None, None]
    assert layout.ranks[0].kv_bytes_per_token_if_all_full == 64 * 1024


def test_a_quantisation_without_a_method_is_none() -> None:
    plain, odd = geometry(LLAMA_8B), geometry(LLAMA_8B, quantization_config={"bits": 4, "group_size": 64})
    assert weights(lay_out(Sizes(), odd, VLLM)) == weights(lay_out(Sizes(), plain, VLLM))


@pytest.mark.parametrize(
    ("dtype", "checkpoint", "element_bytes"),
    [
        (None, "bfloat16", 2),
        ("auto", "float32", 2),
        (None, None, 2),
        ("float32", "bfloat16", 4),
        ("half", "bfloat16", 2),
    ],
)
def test_the_type_decides_the_bytes(dtype: str | None, checkpoint: str | None, element_bytes: int) -> None:
    layout = lay_out(Sizes(), geometry(LLAMA_8B, torch_dtype=checkpoint), VLLM, dtype=dtype)
    assert weights(layout) == [8_030_261_248 * element_bytes]
    assert layout.ranks[0].kv_bytes_per_token_if_all_full == 65536 * element_bytes


def test_an_unheard_of_type_is_unknown() -> None:
    layout = lay_out(Sizes(), geometry(LLAMA_8B), VLLM, dtype="float3")
    assert layout.unknown == "--dtype float3 is no type of a known size"
    assert weights(layout) == [None]


@pytest.mark.parametrize("kv_cache_dtype", ["fp8", "fp8_e5m2", "int8"])
def test_a_cache_of_one_byte_halves_the_cost_of_a_token(kv_cache_dtype: str) -> None:
    layout = lay_out(Sizes(), geometry(LLAMA_8B), VLLM, kv_cache_dtype=kv_cache_dtype)
    assert layout.ranks[0].kv_bytes_per_token_if_all_full == 64 * 1024


def test_modelopt_switches_the_cache_to_one_byte() -> None:
    by_modelopt = {"quant_method": "modelopt", "kv_cache_scheme": {"type": "float", "num_bits": 8}}
    layout = lay_out(Sizes(), geometry(LLAMA_8B, quantization_config=by_modelopt), VLLM)
    assert layout.ranks[0].kv_bytes_per_token_if_all_full == 64 * 1024


def test_a_sliding_layer_stops_at_its_window() -> None:
    model = geometry(LLAMA_8B, architectures=["MistralForCausalLM"], model_type="mistral", sliding_window=4096)
    rank = lay_out(Sizes(), model, VLLM).ranks[0]
    assert rank.kv_bytes(1000) == 1000 * 128 * 1024
    assert rank.kv_bytes(100_000) == 4096 * 128 * 1024
    assert rank.kv_bytes_per_token_if_all_full == 128 * 1024


def test_context_parallel_ranks_share_the_tokens() -> None:
    rank = lay_out(Sizes(16, decode_context_parallel_size=2), geometry(LLAMA_8B), VLLM).ranks[0]
    assert rank.kv_bytes(1001) == 501 * 16 * 1024


def test_a_dense_replica_is_the_same_in_every_data_parallel_rank() -> None:
    alone = lay_out(Sizes(2), geometry(QWEN3_8B), VLLM)
    copied = lay_out(Sizes(2, data_parallel_size=3), geometry(QWEN3_8B), VLLM)
    assert weights(copied) == weights(alone) * 3


def test_tied_embeddings_stand_on_both_ends() -> None:
    tied = lay_out(Sizes(1, 3), geometry(QWEN3_8B, tie_word_embeddings=True), VLLM)
    untied = lay_out(Sizes(1, 3), geometry(QWEN3_8B), VLLM)
    assert weights(tied) == weights(untied)  # the head is as large as the embedding that takes its place
    assert weights(lay_out(Sizes(), geometry(QWEN3_8B, tie_word_embeddings=True), VLLM)) == [
        (weights(lay_out(Sizes(), geometry(QWEN3_8B), VLLM))[0] or 0) - 151936 * 4096 * 2
    ]


def test_the_ends_of_a_mixture_stand_on_every_stage() -> None:
    layout = lay_out(Sizes(1, 4), geometry(MIXTRAL), VLLM)
    assert len(set(weights(layout))) == 1


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (Sizes(0), "tensor_parallel_size is 0 and must be at least 1"),
        (Sizes(1, -3), "pipeline_parallel_size is -3 and must be at least 1"),
        (Sizes(nnodes=0), "nnodes is 0 and must be at least 1"),
        (Sizes(1, 33), "pipeline stage 32 of 33 holds no layer"),
        (Sizes(enable_expert_parallel=True), "expert parallelism of a model without experts"),
        (
            Sizes(1, 2, pp_layer_partition="16,15"),
            "VLLM_PP_LAYER_PARTITION: the parts add up to 31 and the model has 32 layers",
        ),
    ],
)
def test_what_the_engine_refuses_is_said(sizes: Sizes, said: str) -> None:
    assert lay_out(sizes, geometry(LLAMA_8B), VLLM).refused == said


@pytest.mark.parametrize("sizes", [Sizes(10**9), Sizes(1, 10**9), Sizes(64, 65), Sizes(10**30, 10**30, 10**30)])
def test_more_ranks_than_anybody_has_are_not_told_apart(sizes: Sizes) -> None:
    layout = lay_out(sizes, geometry(LLAMA_8B), VLLM, gpus_per_node=8)
    assert layout.ranks == layout.groups("tp") == layout.crossing("tp") == ()
    assert layout.unknown == f"the layout has {sizes.world_size} ranks, and at most {MOST_RANKS} are told apart"


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"])
@pytest.mark.parametrize("value", ["many", -1, 10**40, 1.5, [1], True])
def test_a_hostile_config_gives_no_figure_or_a_huge_one(key: str, value: object) -> None:
    layout = lay_out(Sizes(2, 2), geometry(LLAMA_8B, **{key: value}), VLLM)
    assert layout.ranks[0].weight_bytes is None or layout.ranks[0].weight_bytes > 0


@given(
    st.integers(-2, 70), st.integers(-2, 70), st.integers(-2, 9), st.booleans(), st.none() | st.text("0123456789,-x")
)
def test_no_size_raises(tp: int, pp: int, dp: int, ep: bool, partition: str | None) -> None:
    sizes = Sizes(tp, pp, dp, enable_expert_parallel=ep, pp_layer_partition=partition)
    layout = lay_out(sizes, geometry(MIXTRAL), VLLM, gpus_per_node=8)
    assert layout.ranks or layout.refused or layout.unknown


@pytest.mark.parametrize(
    ("capability", "kv_cache_dtype", "latent_bytes"),
    [("9.0", None, 1152), ("10.0", None, 576), ("10.0", "bfloat16", 1152), ("12.0", "auto", 1152)],
)
def test_glm_5_takes_an_fp8_cache_on_blackwell_where_nobody_asks(
    capability: str, kv_cache_dtype: str | None, latent_bytes: int
) -> None:
    card = Accelerator("", "a card", "NVIDIA", None, None, None, capability)
    layout = lay_out(Sizes(), geometry(GLM_5), VLLM, gpu=card, kv_cache_dtype=kv_cache_dtype)
    assert layout.ranks[0].kv_bytes_per_token_if_all_full == 4 * (latent_bytes + 132)
