"""Which modules a quantised checkpoint packs, by what its lists say."""

from __future__ import annotations

from typing import Any

import pytest

from shardlint.architectures import Row, Rows, rows_of
from shardlint.architectures.model import Missing
from shardlint.architectures.quantisation import quantisation_of
from shardlint.architectures.quantisation.modules import expression
from shardlint.facts import Geometry
from shardlint.facts.geometry import read

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
MOE = TINY | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
AUTO_ROUND: dict[str, Any] = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}
TENSOR: dict[str, Any] = {"dtype": "fp8_e4m3", "is_dynamic": False, "qscheme": "per_tensor"}
QUARK: dict[str, Any] = {"quant_method": "quark", "global_quant_config": {"weight": TENSOR, "input_tensors": TENSOR}}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
PACKED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True},
        }
    },
}


def model(config: dict[str, Any], **side_files: Any) -> Geometry:
    return read(config, "a/model", side_files)


def rows(quantisation: dict[str, Any] | None, config: dict[str, Any] | None = None) -> Rows:
    found = rows_of(model((config or TINY) | ({"quantization_config": quantisation} if quantisation else {})))
    assert isinstance(found, Rows)
    return found


def packed(found: Rows, name: str) -> list[int]:
    """The layers in which rows of that name are packed."""
    named = [row for row in found.weights if row.name.endswith(name)]
    assert named
    return sorted(layer for row in named if row.scheme for layer in row.layers)


def head(found: Rows) -> Row:
    (row,) = (row for row in found.weights if row.name == "lm_head")
    return row


def test_norms_and_embeddings_are_never_packed() -> None:
    found = rows(NVFP4)
    assert not any(row.scheme for row in found.weights if "norm" in row.name or "embed" in row.name)
    assert packed(found, "qkv_proj") == packed(found, "down_proj") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("quantisation", "is_packed"),
    [(AWQ, False), (GPTQ, False), (FP8, False), (PACKED, False), (NVFP4, True), (AWQ | {"lm_head": True}, True)],
)
def test_only_some_methods_pack_the_output_head(quantisation: dict[str, Any], is_packed: bool) -> None:
    assert (head(rows(quantisation)).scheme is not None) == is_packed


@pytest.mark.parametrize(
    ("quantisation", "left_out"),
    [
        (FP8 | {"modules_to_not_convert": ["model.layers.1.self_attn.o_proj"]}, [1]),
        (FP8 | {"ignored_layers": ["o_proj"]}, []),
        (AWQ | {"modules_to_not_convert": ["layers.1.self_attn"]}, [1]),
        (AWQ | {"modules_to_not_convert": ["o_proj"]}, [0, 1, 2, 3]),
        (GPTQ | {"dynamic": {r"-:.*layers\.[12]\..*": {}}}, [1, 2]),
        (GPTQ | {"modules_in_block_to_quantize": [["mlp.down_proj"], ["mlp.gate_proj", "mlp.up_proj"]]}, [0, 1, 2, 3]),
        (PACKED | {"ignore": ["re:.*layers.3.*"]}, [3]),
        (PACKED | {"ignore": ["model.layers.2.self_attn.o_proj", "lm_head"]}, [2]),
        (NVFP4 | {"ignore": ["*layers.0.*", "model.layers.2.self_attn.o_proj"]}, [0, 2]),
        (NVFP4 | {"exclude_modules": ["self_attn.o_proj"]}, [0, 1, 2, 3]),
    ],
)
def test_lists_leave_modules_alone_each_in_its_own_way(quantisation: dict[str, Any], left_out: list[int]) -> None:
    assert packed(rows(quantisation), "o_proj") == [layer for layer in range(4) if layer not in left_out]


def test_merged_layers_are_left_alone_by_the_names_of_their_parts() -> None:
    parts = [f"model.layers.1.self_attn.{part}_proj" for part in "qkv"]
    assert packed(rows(FP8 | {"modules_to_not_convert": parts}), "qkv_proj") == [0, 2, 3]


def test_a_merged_layer_of_which_only_a_part_is_packed_is_not_described() -> None:
    found = rows(FP8 | {"modules_to_not_convert": ["model.layers.1.self_attn.q_proj"]})
    assert found.bytes_unknown is not None
    assert "only a part of model.layers.1.self_attn.qkv_proj" in found.bytes_unknown.reason


def test_mxfp4_packs_experts_only() -> None:
    found = rows({"quant_method": "mxfp4"}, MOE)
    assert packed(found, "experts.w13") == [0, 1, 2, 3]
    assert packed(found, "qkv_proj") == []


def test_mixed_precision_has_an_algorithm_for_each_layer() -> None:
    layers = {f"model.layers.{layer}.mlp.down_proj": {"quant_algo": "FP8"} for layer in range(2)}
    layers |= {"model.layers.2.mlp.down_proj": {"quant_algo": "NVFP4"}}
    found = rows({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    bits = {layer: row.scheme.bits for row in found.weights if row.scheme for layer in row.layers}
    assert bits == {0: 8, 1: 8, 2: 4}
    assert packed(found, "qkv_proj") == []


def test_some_methods_keep_scales_beside_every_attention() -> None:
    scalars = [row.outs[0].count for row in rows(PACKED).weights if row.name.endswith("attn.scales")]
    assert scalars == [3, 3]
    assert [row.element_type for row in rows(FP8).weights if row.name.endswith("attn.scales")] == ["model"]
    assert not any(row.name.endswith("attn.scales") for row in rows(AWQ).weights)


def test_a_side_file_counts_only_where_modelopt_made_it() -> None:
    file = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": []}}
    assert quantisation_of(model(TINY, **{"hf_quant_config.json": file})) is None
    made = file | {"producer": {"name": "modelopt"}}
    assert quantisation_of(model(TINY, **{"hf_quant_config.json": made})) == "modelopt_fp4"
    assert quantisation_of(model(TINY | {"quantization_config": {"bits": 4, "group_size": 64}})) is None


@pytest.mark.parametrize(
    "quantisation",
    [
        {"quant_method": "fbgemm_fp8"},
        {"quant_method": "gptq", "bits": 3, "group_size": 128},
        GPTQ | {"sym": False},
        AWQ | {"group_size": "all"},
        FP8 | {"weight_block_size": [128]},
        {"quant_method": "modelopt", "quant_algo": "FP2"},
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"]}}},
        PACKED | {"ignore": ["re:(a+)+$"]},
        PACKED | {"ignore": ["re:("]},
        AUTO_ROUND | {"sym": False},
        AUTO_ROUND | {"to_quant_block_names": ["model.layers"]},
        AUTO_ROUND | {"extra_config": {"model.layers.0.mlp.down_proj": {"bits": 8}}},
        AUTO_ROUND | {"extra_config": {".*mlp.*": {"bits": 16}}},
        QUARK | {"layer_quant_config": {"*mlp*": {}}},
        QUARK | {"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_group"}}},
    ],
)
def test_what_is_not_described_is_unknown_and_the_sizes_stay(quantisation: dict[str, Any]) -> None:
    found = rows(quantisation)
    assert found.bytes_unknown is not None
    assert len(found.weights) == len(rows(None).weights)


def test_autoround_packs_as_another_method_does_but_for_the_layers_it_names() -> None:
    kept = {f"model.layers.0.self_attn.{name}_proj": {"bits": 16} for name in "qkv"}
    found = rows(AUTO_ROUND | {"extra_config": kept})
    packed = {(row.name, tuple(row.layers)) for row in found.weights if row.scheme is not None}
    assert ("model.layers.#.self_attn.qkv_proj", tuple(range(1, found.layers))) in packed
    assert {row.scheme for row in found.weights if row.scheme} == {
        row.scheme for row in rows(GPTQ).weights if row.scheme
    }


def test_quark_leaves_alone_what_it_names() -> None:
    found = rows(QUARK | {"exclude": ["re:.*mlp.*", "lm_head"]})
    assert {row.name.split(".")[3] for row in found.weights if row.scheme is not None} == {"self_attn"}


@pytest.mark.parametrize("text", ["(a+)+$", "(.*x)*y", ".*.*.*.*.*.*a", "["])
def test_expressions_that_might_take_for_ever_are_not_tried(text: str) -> None:
    with pytest.raises(Missing):
        expression(text)
