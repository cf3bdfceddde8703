"""Hunyuan 4: latent attention with sinks and gates between several residual streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardlint.architectures.blocks.attention import sinks
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router, shared_experts
from shardlint.architectures.blocks.latent_attention import NAME, indexer, latent, latent_caches
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms
from shardlint.architectures.families.decoders import MLP, Family, dense_beside
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import listed_as
from shardlint.architectures.rows import ONE, Extent, Row, Rows

SPARSE = ("deepseek_sparse_attention", "sparse_attention", "sparse", "indexed_attention")
GATES = ("elementwise", "headwise")


def hunyuan4(model: Model) -> Rows:
    """Hunyuan 4: latent attention, some of it sparse, with sinks and gates, and several residual streams."""
    moe = listed_as(model, "mlp_layer_types", "sparse", model.layers[1:])
    indexed = _indexed_layers(model)
    streams = model.flag("enable_ihc")
    weights = (
        *latent(model),
        *(indexer(model, indexed) if indexed else ()),
        *_gates_and_sinks(model),
        *_experts(model, moe),
        *dense_beside(model, moe),
        *layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers),
        *(_streams(model) if streams else ()),
        *ends(model),
    )
    return Rows(tuple(weights), latent_caches(model, indexed), len(model.layers))


def _sparse_layers(model: Model) -> Sequence[int]:
    if not model.odd("index_topk"):
        return ()
    return sorted({layer for kind in SPARSE for layer in listed_as(model, "layer_types", kind)})


def _indexed_layers(model: Model) -> Sequence[int]:
    """The sparse layers that have an indexer of their own; the first and each fourth behind it where none is named."""
    fourth = tuple(layer for layer in model.layers if layer == 0 or (layer - 1) % 4 == 0)
    own = frozenset(listed_as(model, "indexer_types", "full", fourth))
    return tuple(layer for layer in _sparse_layers(model) if layer in own)


def _gates_and_sinks(model: Model) -> Iterator[Row]:
    if model.flag("gated_mla"):
        kind = model.odd("gating_type", "elementwise")
        if kind not in GATES:
            raise Missing(f"gating_type of {model.geometry.model_id} is {kind!r}, which is not described")
        gates = Extent(model.heads, "query_head", 1 if kind == "headwise" else model.odd_number("v_head_dim"))
        yield Row(f"{NAME}.linear_gate", (gates,), Extent(model.hidden_size), layers=model.layers)
    if model.flag("learnable_sink"):
        sparse = _sparse_layers(model)
        dense = tuple(layer for layer in model.layers if layer not in frozenset(sparse))
        name = "learnable_sink_param"
        yield from sinks(model.heads, dense, name=name)
        # the kernels of sparse attention take sinks of 32 bits; those of the other layers are never used
        yield from (row._replace(element_type="float32") for row in sinks(model.heads, sparse, name=name))


def _experts(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    norms, shared = model.flag("norm_topk_prob", default=True), width * model.odd_number("n_shared_experts", 0)
    scores = Row(f"{MLP}.expert_bias", (Extent(experts),), layers=moe, element_type="float32", quantisable=False)
    return (
        router(f"{MLP}.gate", experts, hidden, moe, element_type="float32"),
        scores,
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=norms, one_a_rank=True),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe),
    )


def _streams(model: Model) -> Iterator[Row]:
    """What reads and writes the residual streams around each block, and what joins them after the last, in 32 bits."""
    streams = model.odd_number("hc_mult")
    joined, mixes = Extent(streams * model.hidden_size), Extent(2 * streams)
    for block in ("attn", "mlp"):
        for part, outs, contraction in (("fn", mixes, joined), ("base", mixes, ONE), ("scale", Extent(2), ONE)):
            name = f"model.layers.#.hc_{block}_layer.hc_pre.hc_{part}"
            yield Row(name, (outs,), contraction, layers=model.layers, element_type="float32", quantisable=False)
    last = Extent(streams)
    for part, outs, contraction in (("fn", last, joined), ("base", last, ONE), ("scale", ONE, ONE)):
        name = f"model.hc_head.hc_head_{part}"
        yield Row(name, (outs,), contraction, stage="last", element_type="float32", quantisable=False)


FAMILIES: Mapping[str, Family] = {
    "HYV4ForCausalLM": hunyuan4,
}
"""Architecture class -> family."""
