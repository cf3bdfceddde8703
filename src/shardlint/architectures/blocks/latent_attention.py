"""Multi-head latent attention (MLA): keys and values of all heads from one latent that every rank keeps whole."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Model
from shardlint.architectures.rows import CacheRow, Extent, Row

NAME = "model.layers.#.self_attn"
INDEX_BLOCK = 128
"""Elements of an index key that share one 4-byte scale."""


def latent(model: Model, *, name: str = NAME, layers: Sequence[int] | None = None) -> tuple[Row, ...]:
    """Attention of every layer: projections down into the latents, whole, and up to the heads, cut by them."""
    layers = model.layers if layers is None else layers
    rank, rope = model.odd_number("kv_lora_rank"), model.odd_number("qk_rope_head_dim")
    nope, value = model.odd_number("qk_nope_head_dim"), model.odd_number("v_head_dim")
    hidden, keys = Extent(model.hidden_size), Extent(rank + rope)
    up = Extent(model.heads, "query_head", nope + value)
    return (
        *_queries(model, name, layers, Extent(model.heads, "query_head", nope + rope), keys),
        norm(f"{name}.kv_a_layernorm", rank, layers),
        Row(f"{name}.kv_b_proj", (up,), Extent(rank), layers=layers, attention="latent"),
        Row(f"{name}.o_proj", (hidden,), Extent(model.heads * value, "row"), layers=layers),
    )


def _queries(model: Model, name: str, layers: Sequence[int], queries: Extent, keys: Extent) -> tuple[Row, ...]:
    """Queries by way of a latent of their own, or straight from the hidden states, and the latent of the keys."""
    hidden, rank = Extent(model.hidden_size), model.odd("q_lora_rank")
    if rank is None:
        return (
            Row(f"{name}.kv_a_proj_with_mqa", (keys,), hidden, layers=layers),
            Row(f"{name}.q_proj", (queries,), hidden, layers=layers),
        )
    down, fuses = Extent(model.odd_number("q_lora_rank")), ("q_a_proj", "kv_a_proj_with_mqa")
    return (
        Row(f"{name}.fused_qkv_a_proj", (down, keys), hidden, layers=layers, fuses=fuses),
        norm(f"{name}.q_a_layernorm", down.count, layers),
        Row(f"{name}.q_b_proj", (queries,), down, layers=layers),
    )


def indexer(model: Model, layers: Sequence[int], *, name: str = f"{NAME}.indexer") -> tuple[Row, ...]:
    """The lightning indexer of sparse attention, whole on every rank."""
    heads, width = model.odd_number("index_n_heads"), model.odd_number("index_head_dim")
    outs, hidden = (Extent(width), Extent(heads)), Extent(model.hidden_size)
    queries = (Extent(heads * width),)
    return (
        Row(f"{name}.wq_b", queries, Extent(model.odd_number("q_lora_rank")), layers=layers),
        Row(f"{name}.wk_weights_proj", outs, hidden, layers=layers, quantisable=False),
        norm(f"{name}.k_norm", width, layers, bias=True)._replace(element_type="float32"),
    )


def latent_caches(model: Model, indexed: Sequence[int] = ()) -> tuple[CacheRow, ...]:
    """The latent and the rotary key of every layer, and the index key in 8 bits with its scales."""
    elements = model.odd_number("kv_lora_rank") + model.odd_number("qk_rope_head_dim")
    rows = (CacheRow(model.layers, Extent(1), elements, "latent"),)
    if not indexed:
        return rows
    width = model.odd_number("index_head_dim")
    return (*rows, CacheRow(indexed, Extent(1), width + width // INDEX_BLOCK * 4, "index", element="byte"))
