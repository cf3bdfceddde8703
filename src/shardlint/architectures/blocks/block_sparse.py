"""Block-sparse attention: key blocks picked by an index that has heads and a cache of its own (MiniMax-M3)."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.attention import cache, grouped_query
from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Model
from shardlint.architectures.rows import CacheRow, Extent, Row

NAME = "model.layers.#.self_attn"
FUSES = ("q_proj", "k_proj", "v_proj", "index_q_proj", "index_k_proj")


def block_sparse(model: Model, indexed: Sequence[int]) -> tuple[Row, ...]:
    """Attention of every layer; in the `indexed` ones the queries and the key of the index stand in the same weight."""
    if not indexed:
        return grouped_query(model, head_norms="per_head")
    width = _index_width(model)
    index = (Extent(model.kv_heads, "kv_head", width), Extent(width))
    plain = _others(model, indexed)
    return (
        *(grouped_query(model, head_norms="per_head", layers=plain) if plain else ()),
        *(_with_index(row, index) for row in grouped_query(model, head_norms="per_head", layers=indexed)),
        norm(f"{NAME}.index_q_norm", width, indexed),
        norm(f"{NAME}.index_k_norm", width, indexed),
    )


def block_sparse_caches(model: Model, indexed: Sequence[int]) -> tuple[CacheRow, ...]:
    """Keys and values of every layer, and one key of the index, whole on every rank and always of the model's type."""
    if not indexed:
        return (cache(model, model.layers),)
    index = CacheRow(indexed, Extent(1), _index_width(model), "index", element="model")
    return (cache(model, model.layers), index)


def _with_index(row: Row, index: tuple[Extent, ...]) -> Row:
    if not row.name.endswith("qkv_proj"):
        return row
    return row._replace(outs=(*row.outs, *index), fuses=FUSES)


def _index_width(model: Model) -> int:
    return model.part_number("sparse_attention_config", "sparse_index_dim")


def _others(model: Model, layers: Sequence[int]) -> Sequence[int]:
    chosen = frozenset(layers)
    return tuple(layer for layer in model.layers if layer not in chosen)
