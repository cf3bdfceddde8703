"""One test for each way in which families name the same thing differently. The configs are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardlint.facts.geometry import Geometry, read
from shardlint.facts.readers import READERS
from shardlint.findings import Located, Unknown
from shardlint.text.source import Source

DENSE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_attention_heads": 24,
    "num_key_value_heads": 6,
    "num_hidden_layers": 10,
    "hidden_size": 1536,
    "intermediate_size": 4000,
    "vocab_size": 1000,
}


def values(config: dict[str, Any], *names: str) -> list[Any]:
    geometry = read(config)
    return [geometry.value(name) for name in names]


def heads(config: dict[str, Any]) -> list[Any]:
    return values(config, "num_attention_heads", "num_key_value_heads")


def reason(config: dict[str, Any], name: str) -> str:
    fact = read(config).facts[name]
    assert isinstance(fact, Unknown)
    return fact.reason


def test_a_plain_config_gives_its_numbers_and_the_size_of_a_head_follows() -> None:
    names = ("num_attention_heads", "num_key_value_heads", "num_hidden_layers", "head_dim", "num_experts")
    assert values(DENSE, *names) == [24, 6, 10, 64, 0]
    assert values(DENSE, "moe_intermediate_size", "kv_lora_rank", "sliding_window", "quant_method") == [None] * 4


def test_every_fact_of_every_config_is_a_value_or_a_reason() -> None:
    for config in ({}, {"model_type": "no-such-type"}, DENSE):
        facts = read(config).facts
        assert set(facts) == set(READERS)
        assert all(isinstance(fact, Located) or fact.reason for fact in facts.values())


# 1. Which dict holds the text geometry


@pytest.mark.parametrize("part", ["text_config", "llm_config", "language_config"])
def test_the_language_model_inside_a_model_with_towers_counts(part: str) -> None:
    config = {
        "model_type": "some_vl",
        "num_attention_heads": 3,
        part: DENSE,
        "vision_config": {"num_attention_heads": 16},
    }
    assert heads(config) == [24, 6]
    assert read(config).text_model_type == "llama"


def test_an_omni_model_keeps_it_two_levels_down() -> None:
    assert heads({"model_type": "omni", "thinker_config": {"text_config": DENSE}, "talker_config": {}}) == [24, 6]


def test_an_older_qwen2_vl_has_text_keys_at_the_top_beside_its_tower() -> None:
    config = {**DENSE, "model_type": "qwen2_vl", "vision_config": {"num_heads": 16}}
    assert heads(config) == [24, 6]


# 2. Absent keys mean class defaults


def test_an_absent_key_means_the_default_of_the_class() -> None:
    config = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34}}
    assert values(config, "num_attention_heads", "num_key_value_heads", "head_dim", "num_hidden_layers") == [
        8,
        4,
        256,
        34,
    ]
    fact = read(config).facts["num_attention_heads"]
    assert isinstance(fact, Located)
    assert (fact.origin, fact.source) == ("default", "class default of gemma3_text")


def test_a_part_without_a_model_type_has_the_class_that_its_owner_gives_it() -> None:
    assert heads({"model_type": "llava", "text_config": {"vocab_size": 32064}}) == [32, 32]


def test_a_written_null_is_no_absent_key() -> None:
    config = {**DENSE, "model_type": "mistral", "sliding_window": None}
    assert values(config, "sliding_window") == [None]
    assert values({**DENSE, "model_type": "mistral"}, "sliding_window") == [4096]


def test_a_default_that_follows_from_other_keys_is_worked_out_instead() -> None:
    config = {"model_type": "llama", "num_attention_heads": 64, "hidden_size": 8192}
    assert values(config, "num_key_value_heads", "head_dim") == [64, 128]


def test_an_unknown_class_has_no_defaults_and_says_so() -> None:
    config = {"model_type": "no-such-type", "hidden_size": 64}
    assert "the defaults of its class are not known" in reason(config, "vocab_size")


# 3. Query heads, layers, width


@pytest.mark.parametrize(
    ("model_type", "config"),
    [
        ("gpt2", {"n_head": 12, "n_layer": 6, "n_embd": 768}),
        ("bloom", {"n_head": 12, "n_layer": 6, "n_embed": 768}),
        ("mpt", {"n_heads": 12, "n_layers": 6, "d_model": 768}),
        ("chatglm", {"num_attention_heads": 12, "num_layers": 6, "hidden_size": 768}),
        ("somebody-elses", {"n_heads": 12, "num_layers": 6, "d_model": 768}),
    ],
)
def test_query_heads_layers_and_width_have_many_names(model_type: str, config: dict[str, Any]) -> None:
    names = ("num_attention_heads", "num_hidden_layers", "hidden_size")
    assert values({"model_type": model_type, **config}, *names) == [12, 6, 768]


def test_whisper_counts_its_encoder_as_its_config_class_does() -> None:
    config = {"model_type": "whisper", "encoder_attention_heads": 20, "decoder_attention_heads": 10, "d_model": 1280}
    assert heads(config) == [20, 20]


def test_a_model_that_lists_its_layers_has_as_many() -> None:
    assert values({"model_type": "nemotron_h", "hybrid_override_pattern": "MEM*E"}, "num_hidden_layers") == [5]


def test_attention_sublayers_of_longcat_are_no_layers() -> None:
    config = {"model_type": "longcat_flash", "num_layers": 28, "num_hidden_layers": 56}
    assert values(config, "num_hidden_layers") == [28]


# 4. KV heads


@pytest.mark.parametrize(
    ("config", "kv_heads"),
    [
        ({"model_type": "falcon", "num_attention_heads": 71, "multi_query": True}, 1),
        ({"model_type": "falcon", "num_attention_heads": 128, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
        ({"model_type": "RefinedWebModel", "n_head": 71, "multi_query": True}, 1),
        (
            {
                "model_type": "chatglm",
                "num_attention_heads": 32,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
            },
            2,
        ),
        ({"model_type": "chatglm", "num_attention_heads": 32, "multi_query_attention": False}, 32),
        ({"model_type": "gpt_bigcode", "n_head": 48}, 1),
        ({"model_type": "gpt_bigcode", "n_head": 48, "multi_query": False}, 48),
        ({"model_type": "dbrx", "n_heads": 48, "attn_config": {"kv_n_heads": 8}}, 8),
        ({"model_type": "step3p5", "num_attention_heads": 64, "num_attention_groups": 8}, 8),
        ({"model_type": "baichuan", "num_attention_heads": 40}, 40),
        ({"model_type": "bloom", "n_head": 112, "num_key_value_heads": None}, 112),
    ],
)
def test_kv_heads_have_many_names(config: dict[str, Any], kv_heads: int) -> None:
    assert values(config, "num_key_value_heads") == [kv_heads]


def test_kv_heads_of_blocks_that_differ_are_those_of_the_first_with_attention() -> None:
    blocks = [
        {"attention": {"no_op": True}},
        {"attention": {"n_heads_in_group": 8}},
        {"attention": {"n_heads_in_group": 16}},
    ]
    config = {
        "model_type": "nemotron-nas",
        "num_attention_heads": 64,
        "num_key_value_heads": None,
        "block_configs": blocks,
    }
    assert values(config, "num_key_value_heads") == [8]
    assert "differs from layer to layer" in reason(config, "intermediate_size")


# 5. The size of a head


@pytest.mark.parametrize(
    ("extra", "size"),
    [
        ({"head_dim": 128}, 128),
        ({"head_dim": None}, 64),
        ({"attention_head_dim": 96}, 96),
        ({"kv_channels": 80}, 80),
        ({"hidden_size_per_head": 72}, 72),
        ({}, 64),
    ],
)
def test_an_explicit_head_size_wins_over_the_quotient(extra: dict[str, Any], size: int) -> None:
    assert values({**DENSE, **extra}, "head_dim") == [size]


# 6. Two geometries in one model


@pytest.mark.parametrize("other", ["num_global_key_value_heads", "swa_num_key_value_heads"])
def test_the_fewest_kv_heads_of_any_layer_are_a_fact_of_their_own(other: str) -> None:
    assert values({**DENSE, other: 2}, "num_key_value_heads", "fewest_key_value_heads") == [6, 2]
    assert values(DENSE, "fewest_key_value_heads") == [6]


# 7. Latent attention

LATENT = {
    **DENSE,
    "model_type": "deepseek_v3",
    "num_key_value_heads": 24,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def test_latent_attention_needs_its_model_type_and_a_rank() -> None:
    names = ("is_mla", "kv_lora_rank", "qk_rope_head_dim", "q_lora_rank", "head_dim")
    assert values(LATENT, *names) == [True, 512, 64, None, 192]
    assert values({**LATENT, "kv_lora_rank": None}, "is_mla", "kv_lora_rank") == [False, None]
    assert values({**LATENT, "model_type": "hunyuan"}, "is_mla", "kv_lora_rank") == [False, None]


def test_a_rope_size_called_head_dim_is_not_the_size_of_a_head() -> None:
    assert values({**LATENT, "model_type": "glm_moe_dsa", "head_dim": 64}, "head_dim") == [192]


def test_compressed_attention_has_no_rank_and_counts_as_latent() -> None:
    config = {"model_type": "deepseek_v4", "num_attention_heads": 64, "head_dim": 512, "compress_ratios": [0, 4, 128]}
    assert values(config, "is_mla", "kv_lora_rank", "head_dim") == [True, None, 512]


# 8. Experts


@pytest.mark.parametrize(
    ("config", "experts"),
    [
        ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}, [8, 2]),
        ({"model_type": "qwen3_moe", "num_experts": 128, "num_experts_per_tok": 8}, [128, 8]),
        ({"model_type": "deepseek_v3", "n_routed_experts": 256, "num_experts_per_tok": 8}, [256, 8]),
        ({"model_type": "ernie", "moe_num_experts": [64, 64], "moe_k": 6}, [64, 6]),
        ({"model_type": "hunyuan", "num_experts": 64, "moe_topk": [1, 8, 8]}, [64, 8]),
        ({"model_type": "kimi", "num_experts": 96, "num_experts_per_token": 16}, [96, 16]),
        ({"model_type": "gemma4_like", "num_experts": 128, "top_k_experts": 8}, [128, 8]),
        (
            {"model_type": "x", "block_configs": [{"block_type": "moe", "n_routed_experts": 12}, {}], "moe_top_k": 1},
            [12, 1],
        ),
        ({**DENSE, "num_experts": 0, "top_k": 50}, [0, 0]),
    ],
)
def test_experts_have_many_names(config: dict[str, Any], experts: list[int]) -> None:
    assert values(config, "num_experts", "num_experts_per_tok") == experts


def test_experts_that_only_a_nested_dict_names_are_not_counted_because_vllm_does_not() -> None:
    assert values({"model_type": "dbrx", "ffn_config": {"moe_num_experts": 16}}, "num_experts") == [0]


def test_the_width_of_an_expert_is_the_plain_one_where_the_family_says_so() -> None:
    assert values({"model_type": "mixtral", "intermediate_size": 14336}, "moe_intermediate_size") == [14336]
    assert values({"model_type": "qwen3_moe", "moe_intermediate_size": 768}, "moe_intermediate_size") == [768]


def test_a_width_that_is_listed_by_layer_counts_where_the_layers_agree() -> None:
    assert values({**DENSE, "intermediate_size": [512, 512]}, "intermediate_size") == [512]
    assert "differs from layer to layer" in reason({**DENSE, "intermediate_size": [512, 256]}, "intermediate_size")


# 9. Windows


def test_a_window_counts_only_where_the_model_uses_it() -> None:
    config = {**DENSE, "model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
    assert values(config, "sliding_window") == [None]
    assert values({**config, "use_sliding_window": True}, "sliding_window") == [4096]


def test_the_smallest_written_length_counts() -> None:
    assert values({"model_type": "chatglm", "seq_length": 8192}, "max_position_embeddings") == [8192]
    assert values({**DENSE, "max_position_embeddings": 900, "seq_len": 700}, "max_position_embeddings") == [700]


# 10. No attention at all


@pytest.mark.parametrize("model_type", ["mamba", "falcon_mamba"])
def test_a_model_without_attention_has_no_heads(model_type: str) -> None:
    assert heads({"model_type": model_type, "hidden_size": 4096}) == [0, 0]


# 12, 13. Vocabulary, dtype, tied embeddings


def test_a_padded_vocabulary_is_the_vocabulary() -> None:
    assert values({"model_type": "chatglm", "padded_vocab_size": 151552}, "vocab_size") == [151552]


@pytest.mark.parametrize(
    "config", [{"torch_dtype": "float16"}, {"dtype": "float16"}, {"text_config": {"dtype": "float16"}}]
)
def test_the_dtype_has_two_names_and_two_places(config: dict[str, Any]) -> None:
    assert values({"model_type": "llama", **config}, "torch_dtype") == ["float16"]


def test_the_outer_word_on_tied_embeddings_counts_before_the_inner_one() -> None:
    inner = {**DENSE, "tie_word_embeddings": True}
    assert values({"text_config": inner, "tie_word_embeddings": False}, "tie_word_embeddings") == [False]
    assert values({"text_config": inner}, "tie_word_embeddings") == [True]


# Quantisation


@pytest.mark.parametrize(
    ("config", "side_file", "method"),
    [
        ({"quantization_config": {"quant_method": "FP8"}}, None, "fp8"),
        ({"quantization_config": {"quant_method": "compressed_tensors"}}, None, "compressed-tensors"),
        ({"text_config": {**DENSE, "quantization_config": {"quant_method": "awq"}}}, None, "awq"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, None, "compressed-tensors"),
        (
            {"quantization_config": {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}},
            None,
            "modelopt_fp4",
        ),
        ({}, {"quantization": {"quant_algo": "FP8"}}, "modelopt"),
        ({}, {"quantization": {"quant_algo": "MIXED_PRECISION"}}, "modelopt_mixed"),
        ({}, None, None),
    ],
)
def test_the_quantisation_stands_in_several_places(
    config: dict[str, Any], side_file: dict[str, Any] | None, method: str | None
) -> None:
    side_files = {"hf_quant_config.json": side_file} if side_file else {}
    assert read({**DENSE, **config}, "", side_files).value("quant_method") == method


def test_a_quantisation_without_a_method_is_unknown() -> None:
    assert "no quant_method" in reason({**DENSE, "quantization_config": {"bits": 4}}, "quant_method")


def test_the_size_of_the_checkpoint_is_what_its_index_says() -> None:
    index = {"model.safetensors.index.json": {"metadata": {"total_size": 1234}}}
    assert read(DENSE, "", index).value("weight_bytes_stated") == 1234
    zero = {"model.safetensors.index.json": {"metadata": {"total_size": 0}}}
    assert read(DENSE, "", zero).value("weight_bytes_stated") is None


# Classes that vLLM replaces


def test_the_class_with_a_tower_replaces_the_one_that_the_file_names() -> None:
    config = {"model_type": "mimo_v2", "architectures": ["MiMoV2ForCausalLM"]}
    assert read(config).architecture == "MiMoV2ForCausalLM"
    assert read({**config, "vision_config": {"depth": 2}}).architecture == "MiMoV2OmniForCausalLM"


# Places


def at(geometry: Geometry, name: str) -> tuple[int, int]:
    fact = geometry.facts[name]
    assert isinstance(fact, Located)
    assert fact.span is not None
    return fact.span.line, fact.span.column


def test_a_written_fact_knows_its_line_and_column() -> None:
    text = '{\n "num_attention_heads": 3,\n "text_config": {\n  "num_attention_heads": 24\n }\n}'
    geometry = read(json.loads(text), source=Source("config.json", text))
    assert at(geometry, "num_attention_heads") == (4, 26)


def test_a_catalogue_row_is_one_place() -> None:
    fact = read(DENSE, catalogue_id="a/b").facts["hidden_size"]
    assert isinstance(fact, Located)
    assert fact.span is not None
    assert (fact.span.path, fact.span.line, fact.source) == ("catalogue:a/b", 1, "hidden_size of a/b")
