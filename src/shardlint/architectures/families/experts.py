"""Families with mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.experts import gated_experts, router
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.families.decoders import MLP, Family, sparse
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import every_layer_slides, qwen_sliding_layers, qwen_sparse_layers
from shardlint.architectures.rows import Row, Rows


def mixtral(model: Model) -> Rows:
    """Mixtral: `intermediate_size` is the width of an expert, and every layer has experts."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers),
    )
    return sparse(model, grouped_query(model), rows, sliding=every_layer_slides(model))


def phimoe(model: Model) -> Rows:
    """Phi-3.5-MoE: Mixtral's experts between LayerNorms, with biases by keys."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    bias = model.flag("attention_bias")
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers),
    )
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    sliding = every_layer_slides(model)
    return sparse(model, attention, rows, sliding=sliding, norm_bias=True, head_bias=model.flag("lm_head_bias"))


def olmoe(model: Model) -> Rows:
    """OLMoE: `intermediate_size` is the width of an expert; head norms over the whole width."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.gate", experts, hidden, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers),
    )
    return sparse(model, grouped_query(model, head_norms="whole_width"), rows)


def qwen2_moe(model: Model) -> Rows:
    """Qwen1.5-MoE and Qwen2-MoE: a shared expert with its own gate beside the others."""
    moe, hidden = qwen_sparse_layers(model), model.hidden_size
    rows = (
        *_qwen_experts(model, moe, router_quantisable=False),
        *gated(f"{MLP}.shared_expert", hidden, model.odd_number("shared_expert_intermediate_size"), moe),
        router(f"{MLP}.shared_expert_gate", 1, hidden, moe),
    )
    attention = grouped_query(model, qkv_bias=model.flag("qkv_bias", default=True))
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def qwen3_moe(model: Model) -> Rows:
    """Qwen3-MoE: head norms; its router is an ordinary linear layer for quantisation."""
    rows = _qwen_experts(model, qwen_sparse_layers(model), router_quantisable=True)
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def _qwen_experts(model: Model, moe: Sequence[int], *, router_quantisable: bool) -> tuple[Row, ...]:
    """Router and experts of the sparse layers, and the dense MLP of the others."""
    hidden, experts = model.hidden_size, model.number("num_experts")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, quantisable=router_quantisable),
        *gated_experts(f"{MLP}.experts", experts, hidden, model.number("moe_intermediate_size"), moe),
    )
    dense_layers = tuple(layer for layer in model.layers if layer not in frozenset(moe))
    if not dense_layers:
        return rows
    return (*rows, *gated(MLP, hidden, model.number("intermediate_size"), dense_layers))


FAMILIES: Mapping[str, Family] = {
    "MixtralForCausalLM": mixtral,
    "OlmoeForCausalLM": olmoe,
    "PhiMoEForCausalLM": phimoe,
    "Qwen2MoeForCausalLM": qwen2_moe,
    "Qwen3MoeForCausalLM": qwen3_moe,
}
"""Architecture class -> family."""
