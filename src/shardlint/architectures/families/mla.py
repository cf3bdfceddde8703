"""Families with multi-head latent attention (MLA)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.compressed_attention import compressed, compressed_caches
from shardlint.architectures.blocks.experts import (
    correction_bias,
    gated_experts,
    is_renormalised,
    router,
    shared_experts,
)
from shardlint.architectures.blocks.latent_attention import NAME, indexer, latent, latent_caches
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.families.experts import glm4_feed_forward
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import deepseek_sparse_layers, indexed_layers, listed_as
from shardlint.architectures.rows import ONE, Extent, Row, Rows, SequenceParallel

QUANTISATION_BLOCK = 128


def deepseek(model: Model) -> Rows:
    """DeepSeek V2 and V3, Kimi K2, Moonlight."""
    if not (model.odd("qk_nope_head_dim") or model.odd("qk_rope_head_dim")):
        return deepseek_v1(model)
    if model.odd("index_topk"):
        return deepseek_sparse(model)
    moe = deepseek_sparse_layers(model)
    rows = (*deepseek_experts(model, moe), *dense_beside(model, moe))
    return sparse(model, latent(model), rows, cache_rows=latent_caches(model), ends_on_every_stage=False, tied=False)


def deepseek_v1(model: Model) -> Rows:
    """DeepSeek's first mixture, and small ones of the second kind: ordinary attention."""
    moe = deepseek_sparse_layers(model)
    rows = (*deepseek_experts(model, moe), *dense_beside(model, moe))
    return sparse(model, grouped_query(model), rows, ends_on_every_stage=False, tied=False)


def dots1(model: Model) -> Rows:
    """dots.llm1: DeepSeek's mixture behind ordinary attention with norms on the heads."""
    moe = deepseek_sparse_layers(model)
    rows = (*deepseek_experts(model, moe), *dense_beside(model, moe))
    attention = grouped_query(model, qkv_bias=model.flag("attention_bias"), head_norms="per_head")
    return sparse(model, attention, rows, ends_on_every_stage=False, tied=False)


def deepseek_sparse(model: Model) -> Rows:
    """DeepSeek V3.2: sparse attention, whose indexer some layers share with the one before them."""
    moe, indexed = deepseek_sparse_layers(model), indexed_layers(model)
    dense = (row._replace(under_sequence_parallel="whole_without_stages") for row in dense_beside(model, moe))
    attention = (*latent(model), *indexer(model, indexed))
    rows = (*deepseek_experts(model, moe), *dense)
    kept = latent_caches(model, indexed)
    return sparse(model, attention, rows, cache_rows=kept, ends_on_every_stage=False, tied=False)


def glm_dsa(model: Model) -> Rows:
    """GLM-5: DeepSeek V3.2, but for the cache's type on data-centre Blackwell."""
    return deepseek_sparse(model)._replace(fp8_cache_on=10)


def deepseek_experts(model: Model, moe: Sequence[int], topk_method: str = "") -> tuple[Row, ...]:
    """Router, its correction where the routing method has one, experts, and shared experts."""
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    shared = width * model.odd_number("n_shared_experts", 0)
    corrected = model.odd("topk_method", topk_method) == "noaux_tc"
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


def axk1(model: Model) -> Rows:
    """A.X K1: DeepSeek V3 with a norm after the feed-forward block too."""
    kinds = model.odd("mlp_layer_types")
    moe = deepseek_sparse_layers(model) if kinds is None else listed_as(model, "mlp_layer_types", "sparse")
    rows = (*deepseek_experts(model, moe, "noaux_tc"), *dense_beside(model, moe))
    norms, kept = (*BEFORE_THE_BLOCKS, "post_mlp_layernorm"), latent_caches(model)
    return sparse(model, latent(model), rows, norms=norms, cache_rows=kept, ends_on_every_stage=False, tied=False)


PANGU_NORMS = (*BEFORE_THE_BLOCKS, "pre_mlp_layernorm", "post_mlp_layernorm")


def pangu_moe(model: Model) -> Rows:
    """openPangu: latent or ordinary attention by its keys, and DeepSeek's experts between norms on both sides."""
    if model.odd_number("param_sink_number", 0):
        raise Missing(f"{model.geometry.model_id} has learnt keys beside those of its tokens, which is not described")
    moe, hidden = model.layers[model.odd_number("first_k_dense_replace", 0) :], model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    shared, bias = width * model.odd_number("n_shared_experts", 0), model.flag("attention_bias") or model.flag("bias")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe),
        *((correction_bias(f"{MLP}.gate", experts, moe),) if model.flag("router_enable_expert_bias") else ()),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=model.flag("norm_topk_prob")),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe, under_sequence_parallel="whole"),
        *dense_beside(model, moe, bias=model.flag("mlp_bias")),
    )
    is_latent = model.odd("kv_lora_rank") is not None
    attention = latent(model) if is_latent else grouped_query(model, qkv_bias=model.flag("qkv_bias", bias))
    kept = latent_caches(model) if is_latent else None
    norms = PANGU_NORMS if model.flag("sandwich_norm") else BEFORE_THE_BLOCKS
    return sparse(model, attention, rows, norms=norms, cache_rows=kept, ends_on_every_stage=False)


def longcat_flash(model: Model) -> Rows:
    """LongCat-Flash: two attentions and two dense MLPs a layer beside the experts, some of which do nothing."""
    if model.odd("disable_quant_module"):
        raise Missing("a LongCat model that leaves modules unquantised by a list of its own is not described")
    hidden, layers, experts = model.hidden_size, model.layers, model.number("num_experts")
    routed, name = experts + model.odd_number("zero_expert_num", 0), f"{MLP}.router"
    width, inner = model.number("moe_intermediate_size"), model.number("intermediate_size")
    halves = tuple(row for half in ("0", "1") for row in gated(f"model.layers.#.mlps.{half}", hidden, inner, layers))
    rows = (
        router(f"{name}.classifier", routed, hidden, layers, element_type="float32"),
        correction_bias(name, routed, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers, balanceable=False),
        *halves,
    )
    attention = (*latent(model, name=f"{NAME}.0"), *latent(model, name=f"{NAME}.1"))
    norms = tuple(f"{norm}.{half}" for norm in BEFORE_THE_BLOCKS for half in ("0", "1"))
    kept = (*latent_caches(model), *latent_caches(model))
    return sparse(model, attention, rows, norms=norms, cache_rows=kept, ends_on_every_stage=False, tied=False)


def deepseek_v4(model: Model) -> Rows:
    """DeepSeek V4: several residual streams, compressed attention, and first layers that choose experts by a hash."""
    name, layers, hidden = "model.layers.#.ffn", model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    hashed = layers[: model.odd_number("num_hash_layers", 0)]
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *_routing_tables(model, f"{name}.gate", experts, hashed, layers[len(hashed) :]),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers),
        *_padded_shared_experts(model, f"{name}.shared_experts", width * model.odd_number("n_shared_experts", 0)),
    )
    residuals = (*hyper_connections(model), *_joined_streams(model))
    attention, norms = (*compressed(model), *residuals), ("attn_norm", "ffn_norm")
    kept = compressed_caches(model)
    decoder = sparse(model, attention, rows, norms=norms, cache_rows=kept, ends_on_every_stage=False, tied=False)
    packed = model.odd("expert_dtype", "fp4") == "fp4"
    return decoder._replace(reads_quantisation_as=(("fp8", "deepseek_v4_fp8"),) if packed else ())


def _routing_tables(
    model: Model, name: str, experts: int, hashed: Sequence[int], scored: Sequence[int]
) -> Iterator[Row]:
    """The experts of every word where a hash chooses them, elsewhere the correction of the scores."""
    if hashed:
        words, chosen = (Extent(model.vocabulary),), Extent(model.number("num_experts_per_tok"))
        yield Row(f"{name}.tid2eid", words, chosen, layers=hashed, element_type="int32", quantisable=False)
    if scored and model.odd("topk_method") == "noaux_tc":
        yield correction_bias(name, experts, scored)


def _padded_shared_experts(model: Model, name: str, width: int) -> Iterator[Row]:
    """Shared experts whose share is padded up to whole blocks of the quantisation."""
    whole: SequenceParallel = "whole_without_stages"
    for row in shared_experts(name, model.hidden_size, width, model.layers, under_sequence_parallel=whole):
        outs = tuple(_in_blocks(out) for out in row.outs)
        yield row._replace(outs=outs, contraction=_in_blocks(row.contraction))


def _in_blocks(extent: Extent) -> Extent:
    return extent if extent.piece == "whole" else extent._replace(share_pads_to=QUANTISATION_BLOCK)


def hyper_connections(model: Model) -> Iterator[Row]:
    """How the residual streams are mixed before each block, in 32 bits."""
    streams = model.odd_number("hc_mult")
    mixes, joined = (Extent((2 + streams) * streams),), Extent(streams * model.hidden_size)
    for block in ("attn", "ffn"):
        for part, outs, contraction in (("fn", mixes, joined), ("base", mixes, ONE), ("scale", (Extent(3),), ONE)):
            name = f"model.layers.#.hc_{block}_{part}"
            yield Row(name, outs, contraction, layers=model.layers, element_type="float32", quantisable=False)


def _joined_streams(model: Model) -> Iterator[Row]:
    """How they are joined after the last layer, on every stage."""
    streams = model.odd_number("hc_mult")
    head, joined = (Extent(streams),), Extent(streams * model.hidden_size)
    for part, outs, contraction in (("fn", head, joined), ("base", head, ONE), ("scale", (ONE,), ONE)):
        name = f"model.hc_head_{part}"
        yield Row(name, outs, contraction, stage="each", element_type="float32", quantisable=False)


FAMILIES: Mapping[str, Family] = {
    "AXK1ForCausalLM": axk1,
    "DeepseekForCausalLM": deepseek_v1,
    "DeepseekV2ForCausalLM": deepseek,
    "DeepseekV3ForCausalLM": deepseek,
    "DeepseekV32ForCausalLM": deepseek_sparse,
    "DeepseekV4ForCausalLM": deepseek_v4,
    "Dots1ForCausalLM": dots1,
    "Glm4MoeLiteForCausalLM": glm4_moe_lite,
    "GlmMoeDsaForCausalLM": glm_dsa,
    "LongcatFlashForCausalLM": longcat_flash,
    "MistralLarge3ForCausalLM": deepseek,
    "PanguProMoEV2ForCausalLM": pangu_moe,
    "PanguUltraMoEForCausalLM": pangu_moe,
}
"""Architecture class -> family."""
