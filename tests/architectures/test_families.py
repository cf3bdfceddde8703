"""Which rows a family has, and when there are none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from shardlint.architectures import Row, Rows, known_pieces, rows_of
from shardlint.architectures.families import FAMILIES, KINDS, encoders
from shardlint.architectures.families.experts import minimax_m3
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.facts import Geometry
from shardlint.facts.geometry import read
from shardlint.findings import Located, Unknown

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 64,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
EXPERTS = {
    "num_experts": 4,
    "num_local_experts": 4,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
    "ffn_config": {"moe_num_experts": 4, "ffn_hidden_size": 32},
}
BLOCK_SPARSE = {"sparse_attention_config": {"sparse_index_dim": 4, "sparse_attention_freq": [0, 1] * 4}}
LATENT = {
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 128,
    "o_groups": 2,
    "o_lora_rank": 8,
    "hc_mult": 2,
    "compress_ratios": [0, 4, 128, 4, 128, 4, 128, 0],
}

VISION: dict[str, Any] = {
    "depth": 4,
    "num_hidden_layers": 4,
    "hidden_size": 32,
    "embed_dim": 32,
    "mlp_ratio": 4,
    "intermediate_size": 64,
    "num_heads": 4,
    "num_attention_heads": 4,
    "patch_size": 2,
    "num_channels": 3,
    "image_size": 8,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
    "projector_input_dim": 16,
    "projector_output_dim": 16,
    "vision_output_dim": 16,
    "position_embedding_size": 16,
}
DELTA_NET = {
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 4,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}
DELTA_AND_LATENT = {
    "linear_attn_config": {"kda_layers": [1, 2, 3, 5, 6, 7], "full_attn_layers": [4, 8]}
    | {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4}
}
MAMBA = {"intermediate_size": 128, "num_heads": 16, "head_dim": 8, "n_groups": 2, "state_size": 4, "conv_kernel": 4}
MAMBA_BESIDE = {
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_d_state": 4,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
}
AUDIO = {"d_model": 32, "encoder_layers": 4, "encoder_ffn_dim": 64, "num_mel_bins": 8}
THINKER = {
    "thinker_config": {
        "text_config": TINY | EXPERTS,
        "vision_config": VISION,
        "audio_config": AUDIO | {"encoder_attention_heads": 4, "downsample_hidden_size": 8},
    }
}
CONFORMER = {
    "name": "cascades",
    "config": {"attention_dim": 32, "attention_heads": 4, "num_blocks": 2, "linear_units": 48, "input_size": 8}
    | {"ext_pw_out_channel": 32, "depthwise_seperable_out_channel": 32, "time_reduction": 4, "input_layer": "nemo_conv"}
    | {"relative_attention_bias_args": {"type": "t5"}},
}
OWN_KEYS: dict[str, dict[str, Any]] = {
    "DeepseekOCR": {"projector_config": {"n_embed": 64, "input_dim": 32}},
    "UnlimitedOCR": {"projector_config": {"n_embed": 64, "input_dim": 32}},
    "DiffusionGemma": {"layer_types": ["sliding_attention", "full_attention"] * 4},
    "Glm5Next": {"layer_types": ["linear_attention", "full_attention"] * 4, "index_kpool": 4}
    | {"linear_num_heads": 4, "linear_head_dim": 8, "linear_conv_kernel_dim": 4},
    "Lfm2Vl": {"layer_types": ["conv", "full_attention"] * 4, "conv_L_cache": 3, "model_type": "lfm2"}
    | {"vision_config": VISION | {"num_patches": 16}, "projector_hidden_size": 48},
    "OlmoHybrid": DELTA_NET | {"layer_types": ["linear_attention", "full_attention"] * 4},
    "Qwen2_5Omni": THINKER,
    "Qwen4Exp": DELTA_NET | {"hc_count": 2, "hc_lowrank": 4},
    "Zamba2": {"mamba_expand": 2, "n_mamba_heads": 8, "mamba_ngroups": 1, "mamba_d_state": 4, "mamba_d_conv": 4}
    | {"adapter_rank": 4, "num_mem_blocks": 1, "hybrid_layer_ids": [2, 5]},
    "Qwen3ASR": THINKER,
    "Qwen3Omni": THINKER,
    "Ernie4_5_VL": {"moe_intermediate_size": [32, 16]},
    "MiniCPMV4_6": DELTA_NET,
    "MiniCPMV": {"version": "2.6", "query_num": 4},
    "Step3p7": {"moe_num_experts": 4, "share_expert_dim": 32}
    | {"layer_types": ["sliding_attention", "full_attention"] * 4},
    "Voxtral": {"model_type": "llama", "audio_config": VISION | AUDIO},
    "Gemma4": {"layer_types": ["sliding_attention", "full_attention"] * 4},
    "Jamba": {"attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2, "expert_layer_offset": 1}
    | {"mamba_expand": 2, "mamba_d_state": 4, "mamba_d_conv": 4},
    "Lfm2": {"layer_types": ["conv", "full_attention"] * 4, "conv_L_cache": 3},
    "NemotronH": {"hybrid_override_pattern": "M*M*M*M*", "mamba_num_heads": 8, "mamba_head_dim": 4}
    | {"n_groups": 2, "ssm_state_size": 4, "conv_kernel": 4},
    "Gemma3n": {"altup_num_inputs": 3, "laurel_rank": 4, "hidden_size_per_layer_input": 4, "num_kv_shared_layers": 2}
    | {"vision_config": VISION | {"architecture": "mobilenetv5_300m_enc", "vocab_size": 8}},
    "Lfm2Moe": {"layer_types": ["conv", "full_attention"] * 4, "conv_L_cache": 3, "num_dense_layers": 2},
    "MiniCPMFor": {"num_experts": 0, "num_local_experts": 0},
    "Nomic": {"moe_every_n_layers": 2},
    "OPT": {"ffn_dim": 128},
    "Qwen2Audio": {"model_type": "llama", "audio_config": AUDIO},
    "AudioFlamingo3": {"model_type": "llama", "audio_config": AUDIO},
    "Whisper": {"decoder_layers": 8, "encoder_layers": 4, "decoder_ffn_dim": 64, "encoder_ffn_dim": 64}
    | {"decoder_attention_heads": 4, "encoder_attention_heads": 4, "num_mel_bins": 8}
    | {"max_source_positions": 32, "max_target_positions": 16},
    "FalconMamba": MAMBA,
    "Mamba": MAMBA,
    "FalconH1": MAMBA_BESIDE | {"mamba_d_ssm": 128},
    "GraniteMoeHybrid": MAMBA_BESIDE | {"layer_types": ["mamba", "attention"] * 4, "shared_intermediate_size": 64},
    "ExaoneMo": {"mlp_layer_types": ["dense", "sparse"] * 4},
    "HYV3": {"expert_hidden_dim": 32},
    "Step3p5": {
        "moe_num_experts": 4,
        "share_expert_dim": 32,
        "layer_types": ["sliding_attention", "full_attention"] * 4,
    },
    "MiMoV2": {"moe_layer_freq": [0, 1] * 4, "hybrid_layer_pattern": [0, 1] * 4, "swa_num_attention_heads": 8}
    | {"swa_num_key_value_heads": 4, "swa_head_dim": 8, "swa_v_head_dim": 4},
    "KimiLinear": DELTA_AND_LATENT,
    "KimiK3": DELTA_AND_LATENT,
    "DeciLM": {"block_configs": [{"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}}] * 8},
    "InternVL": {"llm_config": TINY, "model_type": "llama"},
    "Llava": {"model_type": "llama"},
    "Idefics3": {"model_type": "llama"},
    "SmolVLM": {"model_type": "llama"},
    "PaliGemma": {"model_type": "gemma"},
    "Phi4MM": {"embd_layer": {"audio_embd_layer": {"projection_cls": "mlp"}}, "audio_processor": CONFORMER},
    "Cohere2Vision": {"alignment_intermediate_size": 64},
    "ChatGLM": {"ffn_hidden_size": 128},
    "Qwen3Next": DELTA_NET,
    "Qwen3_5": DELTA_NET,
}
"""Keys that only the families of such a name have."""

ENCODERS = encoders.FAMILIES.keys() - {"WhisperForConditionalGeneration"} | {
    "BgeM3EmbeddingModel",
    "GteModel",
    "GteNewForSequenceClassification",
    "GteNewModel",
    "ModernBertModel",
    "NomicBertModel",
}
"""Families that keep no cache."""


def own_keys(architecture: str) -> dict[str, Any]:
    return next((keys for name, keys in OWN_KEYS.items() if architecture.startswith(name)), {})


def geometry(architecture: str = "LlamaForCausalLM", **changes: Any) -> Geometry:
    return read(TINY | {"architectures": [architecture], "model_type": ""} | changes, "a/model")


def rows(architecture: str = "LlamaForCausalLM", **changes: Any) -> Rows:
    found = rows_of(geometry(architecture, **changes))
    assert isinstance(found, Rows), found
    return found


def row(found: Rows, name: str) -> Row:
    (one,) = (row for row in found.weights if row.name.endswith(name))
    return one


def windows(found: Rows) -> dict[int, int | None]:
    return {layer: cache.window for cache in found.caches for layer in cache.layers}


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_every_family_has_rows_caches_and_ends(architecture: str) -> None:
    common = EXPERTS | LATENT | BLOCK_SPARSE | {"sliding_window": 16, "vision_config": VISION}
    found = rows(architecture, **common | own_keys(architecture))
    assert found.layers == 8
    stateful = {layer for state in found.states for layer in state.layers}
    shared = own_keys(architecture).get("num_kv_shared_layers", 0)
    assert sorted(windows(found).keys() | stateful) == ([] if architecture in ENCODERS else list(range(8 - shared)))
    assert {row.stage for row in found.weights} & {"first", "ends", "each"}
    assert all(row.layers for row in found.weights if row.stage == "layer")
    assert all("#" in row.name for row in found.weights if row.stage == "layer")


HOSTILE = ("x", -1, 0, [], {}, 1.5, True, None, 10**30, [1, 2, 3], ["a"])
TOWER_KEYS = (
    *VISION,
    "num_key_value_heads",
    "select_layer",
    "vocab_size",
    "qkv_hidden_size",
    "merge_kernel_size",
    "img_token_compression_config",
)


@pytest.mark.parametrize("architecture", sorted(name for name, one in FAMILIES.items() if isinstance(one, WithTower)))
def test_no_number_of_a_tower_is_believed_that_is_none(architecture: str) -> None:
    for key in TOWER_KEYS:
        for value in HOSTILE:
            tower = VISION | {key: value}
            keys = EXPERTS | LATENT | BLOCK_SPARSE | {"sliding_window": 16} | own_keys(architecture)
            found = rows_of(geometry(architecture, **(keys | {"vision_config": keys.get("vision_config", {}) | tower})))
            assert isinstance(found, (Rows, Unknown)), (key, value)


def test_no_class_is_described_twice() -> None:
    tables = [import_module(f"shardlint.architectures.families.{kind}").FAMILIES for kind in KINDS]
    assert sum(map(len, tables)) == len(FAMILIES)


def test_a_family_that_is_not_described_says_what_would_settle_it() -> None:
    found = rows_of(geometry("NewForCausalLM"))
    assert isinstance(found, Unknown)
    assert found.reason == "the weights of NewForCausalLM are not described"
    assert found.settle_by


def test_the_main_numbers_alone_give_no_rows_but_their_pieces() -> None:
    facts = {name: Located(TINY[name]) for name in ("num_attention_heads", "num_key_value_heads", "vocab_size")}
    second_hand = Geometry("a/model", "LlamaForCausalLM", "llama", facts)
    found = rows_of(second_hand)
    assert isinstance(found, Unknown)
    assert found.reason == "of a/model only the main numbers are known"
    assert len(known_pieces(second_hand)) == 3


@pytest.mark.parametrize("missing", ["hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"])
def test_a_missing_number_is_named_and_not_guessed(missing: str) -> None:
    found = rows_of(geometry(**{missing: None}))
    assert isinstance(found, Unknown)
    assert missing in found.reason


def test_more_layers_than_any_model_has_are_not_believed() -> None:
    assert isinstance(rows_of(geometry(num_hidden_layers=10**12)), Unknown)


@pytest.mark.parametrize(
    ("architecture", "keys", "qkv", "output"),
    [
        ("LlamaForCausalLM", {}, False, False),
        ("LlamaForCausalLM", {"attention_bias": True}, True, True),
        ("InternLMForCausalLM", {"bias": True}, True, True),
        ("LlamaForCausalLM", {"bias": True, "qkv_bias": False}, False, True),
        ("Qwen2ForCausalLM", {}, True, False),
        ("Qwen3ForCausalLM", {"attention_bias": True}, True, True),
        ("Glm4ForCausalLM", {}, False, False),
        ("Glm4ForCausalLM", {"model_type": "glm4"}, True, False),
        ("Glm4ForCausalLM", {"model_type": "glm4", "attention_bias": False}, False, False),
        ("Qwen2MoeForCausalLM", EXPERTS, True, False),
        ("Qwen2MoeForCausalLM", {**EXPERTS, "qkv_bias": False}, False, False),
        ("StableLmForCausalLM", {"use_qkv_bias": True}, True, False),
        ("SeedOssForCausalLM", {}, True, False),
        ("SeedOssForCausalLM", {"attention_out_bias": True}, True, True),
        ("Ernie4_5ForCausalLM", {"attention_bias": True}, True, False),
        ("Starcoder2ForCausalLM", {}, True, True),
    ],
)
def test_biases_of_the_attention(architecture: str, keys: dict[str, Any], qkv: bool, output: bool) -> None:
    found = rows(architecture, **keys)
    assert (row(found, "qkv_proj").bias, row(found, "self_attn.o_proj").bias) == (qkv, output)


def test_head_norms_are_a_head_wide_or_span_all_heads() -> None:
    assert [out.count for out in row(rows("Qwen3ForCausalLM"), "k_norm").outs] == [8]
    assert [out.count for out in row(rows("Olmo2ForCausalLM"), "k_norm").outs] == [16]
    assert [out.piece for out in row(rows("Olmo2ForCausalLM"), "q_norm").outs] == ["whole"]


def test_qwen_mixtures_have_dense_layers_between() -> None:
    found = rows("Qwen3MoeForCausalLM", **EXPERTS, decoder_sparse_step=2, mlp_only_layers=[3])
    assert tuple(row(found, "experts.w13").layers) == (1, 5, 7)
    assert tuple(row(found, "mlp.gate_up_proj").layers) == (0, 2, 3, 4, 6)


def test_only_the_router_of_qwen3_moe_is_an_ordinary_linear_layer() -> None:
    assert row(rows("Qwen3MoeForCausalLM", **EXPERTS), "mlp.gate").quantisable
    assert not row(rows("Qwen2MoeForCausalLM", **EXPERTS), "mlp.gate").quantisable


@pytest.mark.parametrize(
    ("architecture", "keys", "sliding"),
    [
        ("MistralForCausalLM", {"sliding_window": 16}, range(8)),
        ("MistralForCausalLM", {}, ()),
        ("Qwen2ForCausalLM", {"sliding_window": 16, "use_sliding_window": False}, ()),
        ("Qwen2ForCausalLM", {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 6}, (6, 7)),
        ("Gemma2ForCausalLM", {"sliding_window": 16}, (0, 2, 4, 6)),
        ("Gemma3ForCausalLM", {"sliding_window": 16}, (0, 1, 2, 3, 4, 6, 7)),
        ("Olmo3ForCausalLM", {"sliding_window": 16}, (0, 1, 2, 4, 5, 6)),
        ("Olmo2ForCausalLM", {}, ()),
        (
            "Exaone4ForCausalLM",
            {"sliding_window": 16, "layer_types": ["sliding_attention"] + ["full_attention"] * 7},
            (0,),
        ),
    ],
)
def test_which_layers_slide(architecture: str, keys: dict[str, Any], sliding: Any) -> None:
    found = windows(rows(architecture, **keys))
    assert found == {layer: 16 if layer in sliding else None for layer in range(8)}


def test_a_pruned_model_has_what_each_of_its_blocks_says() -> None:
    attention, nothing = {"n_heads_in_group": 4, "no_op": False}, {"no_op": True}
    blocks = [{"attention": attention, "ffn": nothing}, {"attention": nothing, "ffn": {"ffn_mult": 5.25}}] * 4
    found = rows("DeciLMForCausalLM", block_configs=blocks)
    assert tuple(row(found, "qkv_proj").layers) == tuple(windows(found)) == (0, 2, 4, 6)
    assert [out.count for out in row(found, "gate_up_proj").outs] == [256, 256]
    assert tuple(row(found, "down_proj").layers) == (1, 3, 5, 7)


def test_full_layers_of_gemma4_have_heads_of_their_own_and_the_last_ones_share_caches() -> None:
    kinds = ["sliding_attention", "full_attention"] * 4
    keys: dict[str, Any] = {"layer_types": kinds, "sliding_window": 16, "num_kv_shared_layers": 2}
    small = {"hidden_size_per_layer_input": 4, "use_double_wide_mlp": True, "vocab_size_per_layer_input": 1000}
    spelt = (
        {"global_head_dim": 16},
        {"per_layer_config": {f"{layer:02d}": {"head_dim": 16} for layer in (1, 3, 5, 7)}},
    )
    for own in spelt:
        found = rows("Gemma4ForCausalLM", **keys, **small, **own)
        assert windows(found) == {0: 16, 1: None, 2: 16, 3: None, 4: 16, 5: None}
        assert {cache.elements_per_head for cache in found.caches} == {16, 32}
        assert [tuple(row.layers) for row in found.weights if row.name.endswith("q_proj")] == [(6,), (7,)]
        narrow, wide = (row for row in found.weights if row.name.endswith("gate_up_proj"))
        assert [(out.count, len(mlp.layers)) for mlp in (narrow, wide) for out in mlp.outs[:1]] == [(128, 6), (256, 2)]


def test_a_window_without_its_length_is_unknown() -> None:
    found = rows_of(geometry("Gemma2ForCausalLM"))
    assert isinstance(found, Unknown)
    assert "sliding_window" in found.reason


def test_heads_and_vocabulary_are_known_of_families_that_are_not() -> None:
    pieces = [(extent.piece, extent.count) for row in known_pieces(geometry("NewForCausalLM")) for extent in row.outs]
    assert pieces == [("query_head", 8), ("kv_head", 2), ("vocabulary", 1000)]


def test_latent_attention_keeps_no_kv_heads() -> None:
    latent = known_pieces(
        geometry("DeepseekV3ForCausalLM", model_type="deepseek_v3", kv_lora_rank=512, qk_rope_head_dim=64)
    )
    assert [extent.piece for row in latent for extent in row.outs] == ["query_head", "vocabulary"]


def test_each_fourth_layer_of_llama4_attends_to_all_tokens() -> None:
    found = rows(
        "Llama4ForCausalLM", **EXPERTS, attention_chunk_size=16, interleave_moe_layer_step=2, intermediate_size_mlp=96
    )
    assert windows(found) == {layer: None if layer in (3, 7) else 16 for layer in range(8)}
    assert {cache.kind for cache in found.caches} == {"full", "chunked"}
    assert tuple(row(found, "experts.w13").layers) == (1, 3, 5, 7)
    assert [out.count for out in row(found, "feed_forward.gate_up_proj").outs] == [96, 96]


def test_ernie_has_experts_in_a_range_of_layers() -> None:
    keys = {"moe_layer_start_index": 2, "moe_layer_end_index": 5, "moe_layer_interval": 2, "moe_num_shared_experts": 2}
    found = rows("Ernie4_5_MoeForCausalLM", **EXPERTS, **keys)
    assert tuple(row(found, "experts.w13").layers) == (3, 5)
    assert [out.count for out in row(found, "shared_experts.gate_up_proj").outs] == [64, 64]


@pytest.mark.parametrize(
    ("keys", "indexed"),
    [
        ({}, (0, 1, 2, 3, 4, 5, 6, 7)),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, (0, 1, 2, 6)),
        ({"index_topk_pattern": "FSSFSSFF"}, (0, 3, 6, 7)),
        ({"index_topk_pattern": ["F", "S"]}, (0, 2, 3, 4, 5, 6, 7)),
    ],
)
def test_which_layers_have_an_indexer_of_their_own(keys: dict[str, Any], indexed: tuple[int, ...]) -> None:
    found = rows("GlmMoeDsaForCausalLM", **EXPERTS, **LATENT, **keys)
    assert tuple(row(found, "indexer.wq_b").layers) == indexed
    (index,) = (cache for cache in found.caches if cache.kind == "index")
    assert tuple(index.layers) == indexed
    assert (index.elements_per_head, index.element) == (132, "byte")


def test_without_a_latent_of_their_own_queries_come_straight_from_the_hidden_states() -> None:
    found = rows("DeepseekV2ForCausalLM", **EXPERTS, **LATENT | {"q_lora_rank": None})
    assert [row.name.rpartition(".")[2] for row in found.weights[:2]] == ["kv_a_proj_with_mqa", "q_proj"]


@pytest.mark.parametrize("architecture", ["DeepseekForCausalLM", "DeepseekV2ForCausalLM"])
def test_deepseek_without_latent_attention_attends_like_any_other(architecture: str) -> None:
    none = {"kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0}
    found = rows(architecture, **EXPERTS, **LATENT | none)
    assert [(cache.kind, cache.heads.count) for cache in found.caches] == [("full", 2)]
    assert len(row(found, "qkv_proj").outs) == 3


def test_the_last_layers_of_deepseek_v4_score_their_experts_and_the_first_look_them_up() -> None:
    found = rows(
        "DeepseekV4ForCausalLM",
        **EXPERTS,
        **LATENT,
        num_hash_layers=3,
        topk_method="noaux_tc",
        sliding_window=16,
        num_experts_per_tok=2,
    )
    assert tuple(row(found, "tid2eid").layers) == (0, 1, 2)
    assert tuple(row(found, "e_score_correction_bias").layers) == (3, 4, 5, 6, 7)
    assert tuple(row(found, "indexer.wq_b").layers) == (1, 3, 5)


def test_the_index_of_minimax_m3_stands_in_the_merged_projection() -> None:
    found = minimax_m3(Model(geometry("MiniMaxM3SparseForCausalLM", **EXPERTS, **BLOCK_SPARSE)))
    plain, indexed = (row for row in found.weights if row.name.endswith("qkv_proj"))
    assert (tuple(plain.layers), tuple(indexed.layers)) == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert [(out.count, out.piece) for out in indexed.outs[3:]] == [(2, "kv_head"), (4, "whole")]
    assert [(cache.kind, cache.element) for cache in found.caches] == [("full", "cache"), ("index", "model")]


def test_minimax_m3_without_an_index_attends_like_any_other() -> None:
    found = minimax_m3(Model(geometry("MiniMaxM3SparseForCausalLM", **EXPERTS)))
    assert len(row(found, "qkv_proj").outs) == 3
    assert [cache.kind for cache in found.caches] == ["full"]


@pytest.mark.parametrize(
    ("keys", "sparse"),
    [
        ({}, (1, 2, 3, 4, 5, 6, 7)),
        ({"moe_layers_enum": "3, 4,7"}, (3, 4, 7)),
        ({"mlp_layer_types": ["dense"] * 6 + ["sparse"] * 2}, (6, 7)),
    ],
)
def test_which_layers_of_step_have_experts(keys: dict[str, Any], sparse: tuple[int, ...]) -> None:
    found = rows("Step3p5ForCausalLM", **EXPERTS, **own_keys("Step3p5"), **keys, sliding_window=16)
    assert tuple(row(found, "experts.w13").layers) == sparse


def test_sliding_layers_of_mimo_have_heads_of_their_own_and_values_are_narrow() -> None:
    keys = {"v_head_dim": 4, "sliding_window": 16, "add_swa_attention_sink_bias": True}
    found = rows("MiMoV2FlashForCausalLM", **EXPERTS, **own_keys("MiMoV2"), **keys)
    assert [(cache.heads.count, cache.elements_per_head, cache.window) for cache in found.caches] == [
        (2, 12, None),
        (4, 12, 16),
    ]
    assert tuple(row(found, "attention_sink_bias").layers) == (1, 3, 5, 7)


@pytest.mark.parametrize(
    ("architecture", "keys"),
    [
        ("GraniteMoeForCausalLM", {"layer_types": ["sliding_attention"] * 8}),
        ("ExaoneMoEForCausalLM", {"sliding_windows": [16] * 8, "mlp_layer_types": ["sparse"] * 8}),
        ("MiMoV2FlashForCausalLM", {"attention_projection_layout": "fused_qkv"}),
    ],
)
def test_what_is_not_described_of_a_family_is_unknown(architecture: str, keys: dict[str, Any]) -> None:
    assert isinstance(rows_of(geometry(architecture, **EXPERTS, **keys)), Unknown)


@pytest.mark.parametrize(
    ("architecture", "keys", "parameters"),
    [
        ("LlamaForCausalLM", {}, 0),
        ("LlamaModel", {}, 1000 * 64),
        ("LlamaModel", {"tie_word_embeddings": True}, 0),
        ("BertModel", {}, -64 * 65),
        ("BertForSequenceClassification", {}, 0),
        ("Gemma4ForCausalLM", own_keys("Gemma4") | {"sliding_window": 16, "attention_k_eq_v": True}, 4 * 2 * 8 * 64),
        ("Gemma3nForCausalLM", own_keys("Gemma3n") | {"sliding_window": 16}, -2 * 8 * (2 * 2 * 64 + 1)),
    ],
)
def test_what_the_rows_have_otherwise_than_the_checkpoint_is_said(
    architecture: str, keys: dict[str, Any], parameters: int
) -> None:
    found = rows(architecture, **keys)
    assert sum(unlike.parameters for unlike in found.unlike_checkpoint) == parameters


@pytest.mark.parametrize("ending", ["Model", "ForRewardModeling"])
def test_an_embedder_is_its_language_model_without_the_head(ending: str) -> None:
    found, speaking = rows(f"Qwen3{ending}"), rows("Qwen3ForCausalLM")
    assert [row.name for row in speaking.weights if row not in found.weights] == ["lm_head"]
    assert found.caches == speaking.caches
    assert isinstance(rows_of(geometry("NewModel")), Unknown)


def test_a_number_beyond_any_model_is_none() -> None:
    model = Model(geometry(linear_num_value_heads=10**400, pattern=[1, 10**400]))
    with pytest.raises(Missing, match="linear_num_value_heads"):
        model.odd_number("linear_num_value_heads")
    assert model.numbers("pattern") == [1]
