"""Hybrids of linear attention and layers that attend, beside those of Qwen and Kimi."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router, shared_experts
from shardlint.architectures.blocks.latent_attention import indexer, latent, latent_caches
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.recurrent import (
    KimiDelta,
    decaying_state,
    delta_apart,
    delta_state,
    delta_with_wide_gates,
    kimi_delta,
    kimi_delta_state,
)
from shardlint.architectures.families.decoders import MLP, Family, dense_beside
from shardlint.architectures.families.hybrid import LAYERS, delta_heads, hybrid, listed, others
from shardlint.architectures.families.image_models import glm_ocr
from shardlint.architectures.families.mla import deepseek_experts, hyper_connections
from shardlint.architectures.families.towers import QWEN3_VL_NAMES
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import each, listed_as
from shardlint.architectures.rows import CacheRow, ElementType, Extent, Row, Rows, StateRow

ATTENTION = f"{LAYERS}.self_attn"


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


INDEX_PAGE = 32
"""Entries of the index on a page of its kernel."""


def glm5_next(model: Model) -> Rows:
    """GLM-5.3-Flash: Kimi's delta attention, and latent attention whose index has an entry for several tokens."""
    recurs = listed_as(model, "layer_types", "linear_attention")
    attends, moe = others(model, recurs), listed_as(model, "mlp_layer_types", "sparse", model.layers)
    delta = KimiDelta(
        model.odd_number("linear_num_heads"),
        model.odd_number("linear_head_dim"),
        model.odd_number("linear_conv_kernel_dim"),
        full_gate=False,
    )
    pool = model.odd_number("index_kpool", 0)
    if not pool:
        raise Missing(f"the config of {model.geometry.model_id} does not tell index_kpool")
    dense = (row._replace(under_sequence_parallel="whole") for row in dense_beside(model, moe))
    weights = (
        *_unquantised(kimi_delta(ATTENTION, model.hidden_size, delta, recurs)),
        *_unquantised(latent(model, layers=attends)),
        *_unquantised((*indexer(model, attends), *_pooling(model, pool, attends))),
        *deepseek_experts(model, moe),
        *dense,
        *layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers),
        *(hyper_connections(model) if model.flag("mhc", default=True) else ()),
        *ends(model),
    )
    states = (kimi_delta_state(delta, recurs)._replace(page_multiple=INDEX_PAGE * pool),)
    return hybrid(model, weights, attends, states)._replace(caches=_pooled_caches(model, pool, attends))


def glm5_tower(model: Model, vision: Part) -> tuple[Row, ...]:
    """GLM-OCR's tower with a merger of its own width, which no method of quantisation touches."""
    return _unquantised(glm_ocr(model, vision))


def _unquantised(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row._replace(quantisable=False, attention=None) for row in rows)


def _pooling(model: Model, pool: int, layers: Sequence[int]) -> tuple[Row, ...]:
    """What weighs the index keys of `pool` tokens into one."""
    name, width = f"{ATTENTION}.indexer", Extent(model.odd_number("index_head_dim"))
    return (
        Row(f"{name}.index_kpool_compress_ape", (Extent(pool),), width, layers=layers, element_type="float32"),
        Row(f"{name}.index_kpool_compress_gate", (width,), Extent(model.hidden_size), layers=layers),
    )


def _pooled_caches(model: Model, pool: int, layers: Sequence[int]) -> tuple[CacheRow, ...]:
    """Latents; an entry of the index for each pool of tokens; and keys and gates of the pool that is not yet full."""
    if not layers:
        return ()
    latents, entries = (row._replace(layers=layers) for row in latent_caches(model, layers))
    open_pool = CacheRow(layers, Extent(1), 2 * model.odd_number("index_head_dim"), "sliding", pool, element="model")
    return (latents, entries._replace(tokens=pool), open_pool)


def bailing_linear(model: Model) -> Rows:
    """Ling 2.5 and Ring 2.5: attention of fixed decay, and latent attention in each group's last layer."""
    attends = each(model, model.odd_number("layer_group_size", 1))
    recurs, width, bias = others(model, attends), model.odd_number("head_dim"), model.flag("use_bias")
    heads, groups = Extent(model.heads, "state_head", width), model.odd_number("group_norm_size", 1)
    if not groups:
        raise Missing("group_norm_size is 0")
    name, hidden, inner = ATTENTION, Extent(model.hidden_size), model.heads * width
    qkv_bias, corrected = bias or model.flag("use_qkv_bias"), model.flag("moe_router_enable_expert_bias")
    normed = Extent(groups, "column", inner // groups)
    head_norms = ("query_layernorm", "key_layernorm") if model.flag("use_qk_norm") else ()
    weights = (
        Row(f"{name}.query_key_value", (heads, heads, heads), hidden, qkv_bias, recurs),
        Row(f"{name}.g_proj", (Extent(inner, "column"),), hidden, layers=recurs),
        Row(f"{name}.dense", (hidden,), Extent(inner, "row"), bias, recurs),
        Row(f"{name}.g_norm", (normed,), layers=recurs, quantisable=False),
        *(norm(f"{name}.{key}", width, recurs) for key in head_norms),
        *_bailing_latent(model, attends),
        *_bailing_experts(model, corrected=corrected),
        *_bailing_ends(model),
    )
    return _bailing(model, weights, attends, decaying_state(heads, recurs))


def bailing_v3(model: Model) -> Rows:
    """Ling 3: Kimi's delta attention with wide gates, and latent attention in each group's last layer."""
    attends = each(model, model.odd_number("layer_group_size", 1))
    recurs = others(model, attends)
    kernel = model.odd_number("short_conv_kernel_size", 4)
    delta = KimiDelta(model.heads, model.odd_number("head_dim"), kernel, full_gate=True)
    kinds = {"head_wise": 1, "element_wise": model.odd_number("v_head_dim", 128)}
    gate = kinds.get(model.odd("gated_attention_proj_granularity_type", ""), 0)
    gates, hidden = Extent(model.heads, "query_head", gate), Extent(model.hidden_size)
    weights = (
        *delta_with_wide_gates(ATTENTION, model.hidden_size, delta, recurs),
        *_bailing_latent(model, attends),
        *((Row(f"{ATTENTION}.g_proj", (gates,), hidden, layers=attends),) if gate else ()),
        *_bailing_experts(model, corrected=True),
        *_bailing_ends(model),
    )
    return _bailing(model, weights, attends, kimi_delta_state(delta, recurs))


def _bailing_latent(model: Model, layers: Sequence[int]) -> tuple[Row, ...]:
    rows = latent(model, layers=layers)
    return tuple(row._replace(name=row.name.replace(".o_proj", ".dense")) for row in rows)


def _bailing_experts(model: Model, *, corrected: bool) -> tuple[Row, ...]:
    """A router of 32 bits, experts and shared ones; dense layers come first."""
    moe, hidden = model.layers[model.odd_number("first_k_dense_replace", 0) :], model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    of_shared = model.odd_number("moe_shared_expert_intermediate_size", width)
    shared, bias = of_shared * model.odd_number("num_shared_experts", 0), model.flag("use_bias")
    kind: ElementType = "float32" if model.odd("router_dtype", "fp32") == "fp32" else "model"
    scores = Row(f"{MLP}.gate.expert_bias", (Extent(experts),), layers=moe, element_type="float32", quantisable=False)
    return (
        router(f"{MLP}.gate", experts, hidden, moe, element_type=kind),
        *((scores,) if corrected else ()),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=True, balanceable=False),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe, bias=bias),
        *dense_beside(model, moe, bias=bias),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, model.layers),
    )


def _bailing_ends(model: Model) -> tuple[Row, ...]:
    names = {"model.embed_tokens": "model.word_embeddings"}
    return tuple(row._replace(name=names.get(row.name, row.name)) for row in ends(model, tied=False))


def _bailing(model: Model, weights: Sequence[Row], attends: Sequence[int], state: StateRow) -> Rows:
    kept = tuple(row._replace(layers=attends) for row in latent_caches(model)) if attends else ()
    return hybrid(model, weights, attends, (state,))._replace(caches=kept)


FAMILIES: Mapping[str, Family] = {
    "BailingMoeV2_5ForCausalLM": bailing_linear,
    "BailingMoeV3ForCausalLM": bailing_v3,
    "Glm5NextForCausalLM": glm5_next,
    "Glm5NextForConditionalGeneration": WithTower(glm5_next, glm5_tower, QWEN3_VL_NAMES),
    "OlmoHybridForCausalLM": olmo_hybrid,
}
"""Architecture class -> family."""
