"""States of hybrid models, and the pages of the cache that grow to hold them."""

from __future__ import annotations

from typing import Any

import pytest
from layout_models import VLLM, geometry

from shardlint.layout import Rank, Sizes, lay_out

QWEN3_5: dict[str, Any] = {  # the sizes of Qwen3.5-0.8B
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_hidden_layers": 24,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 248320,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_num_value_heads": 16,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 6,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}
STATE_AT_TP_2 = 3 * (2 * 2048 + 2048) // 2 * 2 + 8 * 128 * 128 * 4


def rank(config: dict[str, Any] = QWEN3_5, kv_cache_dtype: str | None = None, **sizes: int) -> Rank:
    layout = lay_out(Sizes(**sizes), geometry(config), VLLM, kv_cache_dtype=kv_cache_dtype)
    assert layout.unknown is None
    return layout.ranks[0]


@pytest.mark.parametrize(("kv_cache_dtype", "bytes_per_token", "tokens"), [(None, 1024, 576), ("fp8", 512, 1088)])
def test_a_page_holds_a_state_in_whole_multiples_of_64_tokens(
    kv_cache_dtype: str | None, bytes_per_token: int, tokens: int
) -> None:
    """As vLLM 0.33.0 sets the block of Qwen3.5-0.8B at TP 2."""
    found = rank(kv_cache_dtype=kv_cache_dtype, tensor_parallel_size=2)
    (cache,), (state,) = found.caches or (), found.states
    assert (cache.layers, cache.bytes_per_token, cache.tokens_per_page) == (6, bytes_per_token, tokens)
    assert (state.layers, state.bytes) == (18, tokens * bytes_per_token)
    assert STATE_AT_TP_2 <= state.bytes < STATE_AT_TP_2 + 64 * bytes_per_token


def test_a_sequence_takes_whole_pages_and_one_state_for_each_layer_that_keeps_one() -> None:
    found = rank(tensor_parallel_size=2)
    page = 576 * 1024
    assert found.kv_bytes(1) == (6 + 18) * page
    assert found.kv_bytes(576) == (6 + 18) * page
    assert found.kv_bytes(577) == (2 * 6 + 18) * page
    assert found.kv_bytes_per_token_if_all_full == 6 * 1024


def test_a_stage_without_attention_holds_the_bare_states() -> None:
    found = rank(QWEN3_5, tensor_parallel_size=2, pipeline_parallel_size=24)
    assert found.caches == ()
    assert [(state.layers, state.bytes) for state in found.states] == [(1, STATE_AT_TP_2)]
    assert found.kv_bytes(10_000) == STATE_AT_TP_2


def test_models_whose_layers_all_attend_take_no_more_than_their_tokens() -> None:
    found = rank({**QWEN3_5, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}, tensor_parallel_size=2)
    assert found.states == ()
    assert found.kv_bytes(7) == 7 * 24 * 1024


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({}, STATE_AT_TP_2),
        ({"mamba_ssm_cache_dtype": "bfloat16"}, STATE_AT_TP_2 - 8 * 128 * 128 * 2),
        ({"mamba_cache_dtype": "float32"}, STATE_AT_TP_2 + 3 * (2 * 2048 + 2048) // 2 * 2),
        ({"mamba_cache_dtype": "auto", "mamba_ssm_cache_dtype": "auto"}, STATE_AT_TP_2),
    ],
)
def test_options_give_the_elements_of_a_state_another_type(options: dict[str, str], state: int) -> None:
    sizes = Sizes(tensor_parallel_size=2, pipeline_parallel_size=24)
    found = lay_out(sizes, geometry(QWEN3_5), VLLM, **options).ranks[0].states  # type: ignore[arg-type]
    assert [part.bytes for part in found] == [state]


def test_a_written_block_size_is_the_least_that_a_page_holds() -> None:
    hybrid = lay_out(Sizes(tensor_parallel_size=2), geometry(QWEN3_5), VLLM, block_size=1024).ranks[0]
    assert [cache.tokens_per_page for cache in hybrid.caches or ()] == [1024]
    plain = {**QWEN3_5, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
    dense = lay_out(Sizes(), geometry(plain), VLLM, block_size=32).ranks[0]
    assert dense.kv_bytes(33) == dense.kv_bytes(64) == 2 * (dense.kv_bytes(32) or 0)
