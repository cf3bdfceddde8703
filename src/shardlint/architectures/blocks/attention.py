"""Attention whose query heads share key and value heads (MHA, GQA, MQA), and its cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import CacheRow, Extent, Row

HeadNorms = Literal["none", "per_head", "whole_width"]
"""Norms of queries and keys: none, one as wide as a head, or one over all heads that no rank cuts."""


def grouped_query(
    model: Model, *, qkv_bias: bool = False, output_bias: bool = False, head_norms: HeadNorms = "none"
) -> tuple[Row, ...]:
    """Rows of the attention of every layer: merged Q, K and V, the output projection, and the head norms."""
    heads, kv_heads, head_dim = model.heads, model.kv_heads, model.head_dim
    keys = Extent(kv_heads, "kv_head", head_dim)
    name, layers = "model.layers.#.self_attn", model.layers
    queries = Extent(heads, "query_head", head_dim)
    return (
        Row(f"{name}.qkv_proj", (queries, keys, keys), Extent(model.hidden_size), qkv_bias, layers),
        Row(f"{name}.o_proj", (Extent(model.hidden_size),), Extent(heads * head_dim, "row"), output_bias, layers),
        *_head_norms(name, model, head_norms),
    )


def _head_norms(name: str, model: Model, head_norms: HeadNorms) -> tuple[Row, ...]:
    if head_norms == "none":
        return ()
    whole = head_norms == "whole_width"
    heads, kv_heads = (model.heads, model.kv_heads) if whole else (1, 1)
    return (
        norm(f"{name}.q_norm", heads * model.head_dim, model.layers),
        norm(f"{name}.k_norm", kv_heads * model.head_dim, model.layers),
    )


def caches(model: Model, sliding: Sequence[int]) -> tuple[CacheRow, ...]:
    """Keys and values of every layer: of all tokens, or of the last `sliding_window` ones where it slides."""
    slides = frozenset(sliding)
    full = tuple(layer for layer in model.layers if layer not in slides)
    if not sliding:
        return (_cache(model, full),)
    if model.sliding_window is None:
        raise Missing(f"the config of {model.geometry.model_id} does not tell sliding_window")
    windowed = _cache(model, sliding, model.sliding_window)
    return (_cache(model, full), windowed) if full else (windowed,)


def _cache(model: Model, layers: Sequence[int], window: int | None = None) -> CacheRow:
    heads = Extent(model.kv_heads, "kv_head")
    return CacheRow(layers, heads, 2 * model.head_dim, "full" if window is None else "sliding", window)
