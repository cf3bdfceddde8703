"""Attention to keys picked by an index, one entry for several tokens, that stands in the same weight (Qwen4)."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import CacheRow, Extent, Row

NAME = "model.layers.#.self_attn"
FUSES = ("q_proj", "k_proj", "v_proj", "indexer.index_qk_proj")
POSITION_ELEMENTS = 12
"""Beside a key: its position along three axes in 64 bits each, counted in elements of 16 bits."""


def indexed_attention(model: Model, heads: Heads, layers: Sequence[int]) -> tuple[Row, ...]:
    """Attention of these layers; queries and keys of the index are whole on every rank, and scales are no weights."""
    width, queries, keys = (model.odd_number(f"indexer_{key}") for key in ("head_dim", "n_heads", "kv_heads"))
    merged, *rest = grouped_query(model, head_norms="per_head", heads=heads, layers=layers)
    return (
        merged._replace(outs=(*merged.outs, Extent((queries + keys) * width)), fuses=FUSES, attention=None),
        *rest,
        *(norm(f"{NAME}.indexer.{part}_layernorm", width, layers) for part in ("q", "k")),
    )


def indexed_caches(model: Model, layers: Sequence[int], *, positions: bool) -> tuple[CacheRow, ...]:
    """Keys and values; one key of the index for a group of tokens; and those of the group that is not yet whole.

    With `positions` the last kind keeps the place of each token in its image beside its key, where there are images.
    """
    width, group = model.odd_number("indexer_head_dim"), model.odd_number("indexer_compress_ratio")
    if not group:
        raise Missing("indexer_compress_ratio is 0")
    open_group = CacheRow(layers, Extent(1), width, "sliding", group, element="model")
    places = open_group._replace(elements_per_head=POSITION_ELEMENTS, with_towers=True)
    return (
        cache(model, layers),
        CacheRow(layers, Extent(1), width, "index", element="model", tokens=group),
        open_group,
        *((places,) if positions else ()),
    )
