"""Hybrids of delta attention and layers that attend, beside those of Qwen and Kimi."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import layer_norms
from shardlint.architectures.blocks.recurrent import delta_apart, delta_state
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.hybrid import LAYERS, delta_heads, hybrid, listed, others
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import Rows


def olmo_hybrid(model: Model) -> Rows:
    """OLMo Hybrid: OLMo 2's layers, norms after the blocks, between gated delta nets with norms before them."""
    attends, hidden = listed(model, "full_attention", None), model.hidden_size
    recurs, net = others(model, attends), delta_heads(model)
    if not model.flag("linear_use_gate", default=True):
        raise Missing(f"{model.geometry.model_id} has delta nets without a gate, which is not described")
    weights = (
        *delta_apart(f"{LAYERS}.linear_attn", hidden, net, recurs),
        *grouped_query(model, head_norms="whole_width", layers=attends),
        *gated(MLP, hidden, model.number("intermediate_size"), model.layers),
        *layer_norms(("input_layernorm",), hidden, recurs),
        *layer_norms(("post_attention_layernorm",), hidden, model.layers),
        *layer_norms(("post_feedforward_layernorm",), hidden, attends),
        *ends(model, on_every_stage=True),
    )
    return hybrid(model, weights, attends, (delta_state(net, recurs, "model")._replace(page_multiple=16),))


FAMILIES: Mapping[str, Family] = {
    "OlmoHybridForCausalLM": olmo_hybrid,
}
"""Architecture class -> family."""
