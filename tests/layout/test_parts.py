"""To which part of a model a row belongs, and that the parts are the whole."""

from __future__ import annotations

from typing import Any

import pytest
from layout_models import LLAMA_8B, LLAMA_70B, QWEN3_8B, VLLM, geometry

from shardlint.architectures import Row, Rows, rows_of
from shardlint.architectures.rows import Extent
from shardlint.layout import Sizes, lay_out
from shardlint.layout.parts import PartName, part_of, parts_of

VOCABULARY = (Extent(8, "vocabulary"),)
WIDE = (Extent(8),)


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (Row("model.layers.#.self_attn.q_norm", WIDE), "norms"),
        (Row("transformer.h.#.ln_1", WIDE), "norms"),
        (Row("transformer.blocks.#.norm_attn_norm.attn.Wqkv", WIDE), "attention"),
        (Row("model.layers.#.mixer.qkv_proj", WIDE), "attention"),
        (Row("model.layers.#.mixer.in_proj", WIDE), "recurrent"),
        (Row("model.layers.#.mixer.up_proj", WIDE), "mlp"),
        (Row("model.layers.#.mixer.fc1_latent_proj", WIDE), "mlp"),
        (Row("model.layers.#.linear_attn.out_proj", WIDE), "recurrent"),
        (Row("transformer.wpe", WIDE, stage="each"), "embedding"),
        (Row("classifier.dense", WIDE, stage="each"), "lm_head"),
        (Row("model.layers.#.mlp.shared_expert_gate", WIDE), "shared_experts"),
        (Row("model.layers.#.mlp.gate", WIDE), "router"),
        (Row("model.layers.#.mlp.gate_up_proj", WIDE), "mlp"),
        (Row("model.layers.#.mlp.experts.w13", WIDE, experts=Extent(4, "expert")), "experts"),
        (Row("encoder.layer.#.attention.output.dense", WIDE), "attention"),
        (Row("encoder.layer.#.output.dense", WIDE), "mlp"),
        (Row("transformer.wte", VOCABULARY, stage="each"), "embedding"),
        (Row("model.embeddings.LayerNorm", WIDE, stage="first"), "norms"),
        (Row("output", VOCABULARY, stage="last"), "lm_head"),
        (Row("visual.blocks.#.attn.qkv", WIDE, stage="first", tower="by_mode"), "towers"),
        (Row("model.layers.#.hc_attn_fn", WIDE), "other"),
        (Row("model.layers.#.per_layer_input_gate", WIDE), "other"),
        (Row("model.layers.#.altup.modality_router", WIDE), "other"),
    ],
    ids=lambda value: value.name if isinstance(value, Row) else value,
)
def test_a_row_belongs_to_one_part(row: Row, part: PartName) -> None:
    assert part_of(row) == part


@pytest.mark.parametrize("config", [LLAMA_8B, LLAMA_70B, QWEN3_8B], ids=["llama-8b", "llama-70b", "qwen3-8b"])
def test_the_parts_are_the_whole(config: dict[str, Any]) -> None:
    model = geometry(config)
    rows = rows_of(model)
    assert isinstance(rows, Rows)
    parts = parts_of(rows, model, VLLM)
    assert sum(part.bytes or 0 for part in parts) == lay_out(Sizes(), model, VLLM).ranks[0].weight_bytes


def test_parameters_are_those_that_are_published() -> None:
    model = geometry(QWEN3_8B)
    rows = rows_of(model)
    assert isinstance(rows, Rows)
    assert sum(part.parameters for part in parts_of(rows, model, VLLM)) == 8_190_735_360
