"""Kimi-Linear and Kimi-K3: delta attention with some layers of latent attention, and experts in a latent space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import correction_bias, router, shared_experts
from shardlint.architectures.blocks.latent_attention import latent, latent_caches
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.recurrent import KimiDelta, kimi_delta, kimi_delta_state
from shardlint.architectures.families.decoders import Family, dense_beside
from shardlint.architectures.families.towers import KIMI_NAMES, moonvit
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import deepseek_sparse_layers
from shardlint.architectures.rows import Extent, Row, Rows

LAYER = "model.layers.#"
LEAST_EXPERT_SHARE = 256
"""Columns of an expert that each tensor parallel rank has at least; the checkpoint's are padded."""


def kimi_linear(model: Model) -> Rows:
    """The language model: `linear_attn_config` counts its layers from 1."""
    recurs, attends = _layers(model, "kda_layers"), _layers(model, "full_attn_layers")
    if sorted((*recurs, *attends)) != list(model.layers):
        raise Missing(f"linear_attn_config of {model.geometry.model_id} does not name each layer once")
    delta = KimiDelta(
        model.part_number("linear_attn_config", "num_heads"),
        model.part_number("linear_attn_config", "head_dim"),
        model.part_number("linear_attn_config", "short_conv_kernel_size"),
        bool(model.part("linear_attn_config").get("use_full_rank_gate")),
    )
    name, moe = f"{LAYER}.self_attn", deepseek_sparse_layers(model)
    dense = (row._replace(under_sequence_parallel="whole_without_stages") for row in dense_beside(model, moe))
    weights = (
        *kimi_delta(name, model.hidden_size, delta, recurs),
        *_latent(model, name, attends),
        *_experts(model, moe),
        *dense,
        *layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers),
        *_residuals(model),
        *ends(model, tied=False),
    )
    kept = tuple(cache._replace(layers=attends) for cache in latent_caches(model))
    return Rows(weights, kept, len(model.layers), states=(kimi_delta_state(delta, recurs),))


def _layers(model: Model, key: str) -> tuple[int, ...]:
    listed = model.part("linear_attn_config").get(key)
    if not isinstance(listed, list) or not all(isinstance(layer, int) for layer in listed):
        raise Missing(f"the config of {model.geometry.model_id} does not tell linear_attn_config.{key}")
    return tuple(layer - 1 for layer in listed)


def _latent(model: Model, name: str, layers: Sequence[int]) -> tuple[Row, ...]:
    """Latent attention; an output gate is merged into the projection down where queries have a latent too."""
    rows = latent(model, name=name, layers=layers)
    if not model.flag("mla_use_output_gate"):
        return rows
    gate = Extent(model.heads, "query_head", model.odd_number("v_head_dim"))
    if model.odd("q_lora_rank") is None:
        return (*rows, Row(f"{name}.g_proj", (gate,), Extent(model.hidden_size), layers=layers))
    down, *others = rows
    merged = f"{name}.fused_qkv_a_g_proj"
    return (down._replace(name=merged, outs=(*down.outs, gate), fuses=(*down.fuses, "g_proj")), *others)


def _experts(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    """Router, shared experts of the full width, and experts that work in a narrower space where a key says so."""
    hidden, experts, name = model.hidden_size, model.number("num_experts"), f"{LAYER}.block_sparse_moe"
    inside = model.odd_number("routed_expert_hidden_size", 0) or hidden
    width = model.number("moe_intermediate_size")
    least = model.odd_number("min_moe_intermediate_per_partition", LEAST_EXPERT_SHARE)
    column, number = Extent(width, "expert_width", least_tensor_share=least), Extent(experts, "expert")
    shared = width * model.odd_number("num_shared_experts", 0)
    rows: tuple[Row, ...] = (
        router(f"{name}.gate", experts, hidden, moe),
        correction_bias(f"{name}.gate", experts, moe),
        *shared_experts(f"{name}.shared_experts", hidden, shared, moe, under_sequence_parallel="whole_without_stages"),
        Row(f"{name}.experts.w13", (column, column), Extent(inside), layers=moe, experts=number),
        Row(f"{name}.experts.w2", (Extent(inside),), column, layers=moe, experts=number),
    )
    return rows if inside == hidden else (*rows, *_around_the_experts(model, name, inside, moe))


def _around_the_experts(model: Model, name: str, inside: int, moe: Sequence[int]) -> tuple[Row, ...]:
    """Into the narrower space and back."""
    outside = Extent(model.hidden_size)
    rows = (
        Row(f"{name}.routed_expert_down_proj", (Extent(inside),), outside, layers=moe, quantisable=False),
        Row(f"{name}.routed_expert_up_proj", (outside,), Extent(inside), layers=moe, quantisable=False),
    )
    return (*rows, norm(f"{name}.routed_expert_norm", inside, moe)) if model.flag("latent_moe_use_norm") else rows


def _residuals(model: Model) -> tuple[Row, ...]:
    """What weighs the residuals of earlier blocks of layers, where the model reads those."""
    if model.odd("attn_res_block_size") is None:
        return ()
    hidden, layers = Extent(model.hidden_size), model.layers
    kinds = ("self_attention_res", "mlp_res")
    return (
        *(norm(f"{LAYER}.{kind}_norm", model.hidden_size, layers) for kind in kinds),
        *(router(f"{LAYER}.{kind}_proj", 1, model.hidden_size, layers) for kind in kinds),
        Row("model.output_attn_res_norm", (hidden,), stage="last", quantisable=False),
        Row("model.output_attn_res_proj", (Extent(1),), hidden, stage="last", quantisable=False),
    )


FAMILIES: Mapping[str, Family] = {
    "KimiK3ForConditionalGeneration": WithTower(kimi_linear, moonvit, KIMI_NAMES),
    "KimiLinearForCausalLM": kimi_linear,
}
"""Architecture class -> family."""
