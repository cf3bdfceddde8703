"""Families with multi-head latent attention (MLA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.experts import (
    correction_bias,
    gated_experts,
    is_renormalised,
    router,
    shared_experts,
)
from shardlint.architectures.blocks.latent_attention import indexer, latent, latent_caches
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.families.experts import glm4_feed_forward
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import deepseek_sparse_layers, indexed_layers
from shardlint.architectures.rows import Row, Rows


def deepseek(model: Model) -> Rows:
    """DeepSeek V2 and V3, Kimi K2, Moonlight."""
    if not (model.odd("qk_nope_head_dim") or model.odd("qk_rope_head_dim")):
        raise Missing("a DeepSeek model without latent attention is not described")
    if model.odd("index_topk"):
        return deepseek_sparse(model)
    moe = deepseek_sparse_layers(model)
    rows = (*_deepseek_experts(model, moe), *dense_beside(model, moe))
    return sparse(model, latent(model), rows, cache_rows=latent_caches(model), ends_on_every_stage=False, tied=False)


def deepseek_sparse(model: Model) -> Rows:
    """DeepSeek V3.2 and GLM-5: sparse attention, whose indexer some layers share with the one before them."""
    moe, indexed = deepseek_sparse_layers(model), indexed_layers(model)
    dense = (row._replace(under_sequence_parallel="whole_without_stages") for row in dense_beside(model, moe))
    attention = (*latent(model), *indexer(model, indexed))
    rows = (*_deepseek_experts(model, moe), *dense)
    kept = latent_caches(model, indexed)
    return sparse(model, attention, rows, cache_rows=kept, ends_on_every_stage=False, tied=False)


def _deepseek_experts(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    """Router, its correction where the routing method has one, experts, and shared experts."""
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    shared = width * model.odd_number("n_shared_experts", 0)
    corrected = model.odd("topk_method") == "noaux_tc"
    renormalised = is_renormalised(model, corrected=corrected)
    return (
        router(f"{MLP}.gate", experts, hidden, moe),
        *((correction_bias(f"{MLP}.gate", experts, moe),) if corrected else ()),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=renormalised),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe, under_sequence_parallel="whole"),
    )


def glm4_moe_lite(model: Model) -> Rows:
    """GLM-4.7-Flash: latent attention with the experts of GLM-4.5."""
    rows = glm4_feed_forward(model, deepseek_sparse_layers(model))
    kept = latent_caches(model)
    return sparse(model, latent(model), rows, cache_rows=kept, ends_on_every_stage=False, tied=False)


FAMILIES: Mapping[str, Family] = {
    "DeepseekV2ForCausalLM": deepseek,
    "DeepseekV3ForCausalLM": deepseek,
    "DeepseekV32ForCausalLM": deepseek_sparse,
    "Glm4MoeLiteForCausalLM": glm4_moe_lite,
    "GlmMoeDsaForCausalLM": deepseek_sparse,
}
"""Architecture class -> family."""
