"""Families with mixtures of experts that vLLM builds by itself or from the modules of Transformers."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import cache, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router, shared_experts
from shardlint.architectures.blocks.norms import AFTER_THE_BLOCKS, layer_norms
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import all_but_each, listed_as, listed_as_sliding
from shardlint.architectures.rows import Rows


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


FAMILIES: Mapping[str, Family] = {
    "Cohere2MoeForCausalLM": cohere2_moe,
    "FlexOlmoForCausalLM": flex_olmo,
    "SolarOpenForCausalLM": solar_open,
}
"""Architecture class -> family."""
