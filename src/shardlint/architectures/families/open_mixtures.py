"""Families with mixtures of experts that vLLM builds by itself or from the modules of Transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query, sinks
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import correction_bias, gated_experts, router, shared_experts
from shardlint.architectures.blocks.mlp import gated_apart
from shardlint.architectures.blocks.norms import AFTER_THE_BLOCKS, GLM4_NORMS, layer_norms
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import all_but_each, listed_as, listed_as_sliding
from shardlint.architectures.rows import Extent, Row, Rows

ATTENTION = "model.layers.#.self_attn"


def cohere2_moe(model: Model) -> Rows:
    """Command-A with experts of `intermediate_size`: one norm a layer, and never an output head of its own."""
    kinds = model.odd("mlp_layer_types")
    moe = model.layers if kinds is None else listed_as(model, "mlp_layer_types", "sparse")
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("intermediate_size")
    sigmoid = model.odd("expert_selection_fn", "softmax") == "sigmoid"
    renormalised = sigmoid or model.flag("norm_topk_prob", default=True)
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=renormalised, one_a_rank=True),
        *shared_experts(f"{MLP}.shared_experts", hidden, width * model.odd_number("num_shared_experts", 0), moe),
        *dense_beside(model, moe, _dense_width_key(model)),
    )
    sliding, window = listed_as_sliding(model, all_but_each(model, 4)), model.number("sliding_window") + 1
    full = tuple(layer for layer in model.layers if layer not in frozenset(sliding))
    weights = (
        *grouped_query(model),
        *rows,
        *layer_norms(("input_layernorm",), hidden, model.layers),
        *ends(model, tied=True, on_every_stage=True),
    )
    kept = (*((cache(model, full),) if full else ()), *((cache(model, sliding, window),) if sliding else ()))
    return Rows(weights, kept, len(model.layers))


def _dense_width_key(model: Model) -> str:
    own = "prefix_dense_intermediate_size"
    return own if model.odd(own) else "intermediate_size"


def flex_olmo(model: Model) -> Rows:
    """FlexOlmo: OLMo 2's attention and norms, and experts of `intermediate_size`."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.gate", experts, hidden, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers, balanceable=False),
    )
    attention = grouped_query(model, head_norms="whole_width")
    return sparse(model, attention, rows, norms=AFTER_THE_BLOCKS, ends_on_every_stage=False)


def solar_open(model: Model) -> Rows:
    """Solar Open: GLM-4.5's experts in every layer, with a router in the model's type."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    rows = (
        router(f"{MLP}.experts.gate", experts, hidden, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers, balanceable=False),
        *shared_experts(f"{MLP}.shared_experts", hidden, width * model.odd_number("n_shared_experts", 1), layers),
    )
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias)
    return sparse(model, attention, rows, ends_on_every_stage=False)


def hunyuan_moe(model: Model) -> Rows:
    """Hunyuan-A13B: experts and one shared MLP in every layer, all of one width, norms on the heads."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.gate.wg", experts, hidden, layers, quantisable=True),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers, balanceable=False),
        *shared_experts(f"{MLP}.shared_mlp", hidden, width, layers),
    )
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, ends_on_every_stage=False)


def kolibri(model: Model) -> Rows:
    """Kolibri 1: experts and a shared one in every layer, and four norms."""
    layers, hidden = model.layers, model.hidden_size
    shared = model.odd_number("shared_expert_intermediate_size", 0)
    rows = (
        *_experts(model, layers),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, layers),
    )
    bias, sliding = model.flag("attention_bias"), listed_as_sliding(model, ())
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, norms=GLM4_NORMS, sliding=sliding, ends_on_every_stage=False)


def mellum(model: Model) -> Rows:
    """Mellum 2: norms on the heads, and experts in every layer but those that are listed as dense."""
    moe = listed_as(model, "mlp_layer_types", "sparse", model.layers)
    bias, sliding = model.flag("attention_bias"), listed_as_sliding(model, ())
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    rows = (*_experts(model, moe), *dense_beside(model, moe))
    return sparse(model, attention, rows, sliding=sliding, ends_on_every_stage=False)


def _experts(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    return (
        router(f"{MLP}.gate", experts, hidden, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, balanceable=False),
    )


def laguna(model: Model) -> Rows:
    """Laguna: each layer may have its own number of query heads, which have gates, and its MLPs are not merged."""
    moe, hidden = listed_as(model, "mlp_layer_types", "sparse", model.layers[1:]), model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    shared, dense = model.odd_number("shared_expert_intermediate_size", 0), _others(model, moe)
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe),
        correction_bias(f"{MLP}.experts", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=True, one_a_rank=True),
        *(gated_apart(f"{MLP}.shared_expert", hidden, shared, moe) if shared else ()),
        *(gated_apart(MLP, hidden, model.number("intermediate_size"), dense) if dense else ()),
    )
    sliding = listed_as_sliding(model, ())
    with_sinks = frozenset(sliding) if model.flag("swa_attention_sink_enabled") else frozenset()
    attention = tuple(
        row
        for heads, layers in _layers_by_heads(model).items()
        for row in (
            *_laguna_attention(model, heads, layers),
            *sinks(heads, tuple(layer for layer in layers if layer in with_sinks), name="sink"),
        )
    )
    return sparse(model, attention, rows, sliding=sliding, ends_on_every_stage=False)


def _layers_by_heads(model: Model) -> Mapping[int, Sequence[int]]:
    """Query heads -> the layers that have so many."""
    listed = model.odd("num_attention_heads_per_layer")
    if listed is None:
        return {model.heads: model.layers}
    heads = model.numbers("num_attention_heads_per_layer")
    if len(heads) < len(model.layers) or min(heads) < 1:
        raise Missing(f"the config of {model.geometry.model_id} does not tell num_attention_heads_per_layer")
    return {one: tuple(layer for layer in model.layers if heads[layer] == one) for one in dict.fromkeys(heads)}


def _laguna_attention(model: Model, heads: int, layers: Sequence[int]) -> tuple[Row, ...]:
    bias, gating = model.flag("attention_bias"), model.odd("gating", True)
    sizes = Heads(heads, model.kv_heads, model.head_dim)
    rows = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head", heads=sizes, layers=layers)
    if not gating:
        return rows
    gates = heads if gating in (True, "per-head") else heads * model.head_dim
    gate = Row(f"{ATTENTION}.g_proj", (Extent(gates, "column"),), Extent(model.hidden_size), layers=layers)
    return (*rows, gate)


def _others(model: Model, layers: Sequence[int]) -> Sequence[int]:
    chosen = frozenset(layers)
    return tuple(layer for layer in model.layers if layer not in chosen)


FAMILIES: Mapping[str, Family] = {
    "Cohere2MoeForCausalLM": cohere2_moe,
    "FlexOlmoForCausalLM": flex_olmo,
    "HunYuanMoEV1ForCausalLM": hunyuan_moe,
    "Kolibri1ForCausalLM": kolibri,
    "LagunaForCausalLM": laguna,
    "MellumForCausalLM": mellum,
    "SolarOpenForCausalLM": solar_open,
}
"""Architecture class -> family."""
