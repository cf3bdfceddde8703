"""Attention whose query heads share key and value heads (MHA, GQA, MQA), and its cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import CacheKind, CacheRow, Extent, Row
from shardlint.findings.records import NamedTuple

HeadNorms = Literal["none", "per_head", "whole_width", "cut_with_the_heads"]
"""Norms of queries and keys: none, one as wide as a head, one over all heads that no rank cuts, or that each cuts."""


class Heads(NamedTuple):
    """Heads of a layer where they differ from the rest of the model. `gated`: each query head has a gate beside it."""

    queries: int
    keys: int
    width: int
    gated: bool = False


def grouped_query(
    model: Model,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    head_norms: HeadNorms = "none",
    heads: Heads | None = None,
    layers: Sequence[int] | None = None,
    name: str = "model.layers.#.self_attn",
    merged: str = "qkv_proj",
    output: str = "o_proj",
) -> tuple[Row, ...]:
    """Rows of the attention of every layer: merged Q, K and V, the output projection, and the head norms.

    `layers` are those that attend, where not all do; `heads` theirs, where they are not the model's.
    """
    heads = heads or Heads(model.heads, model.kv_heads, model.head_dim)
    layers = model.layers if layers is None else layers
    keys = Extent(heads.keys, "kv_head", heads.width)
    queries = Extent(heads.queries, "query_head", heads.width * (2 if heads.gated else 1))
    hidden, inputs = Extent(model.hidden_size), Extent(heads.queries * heads.width, "row")
    return (
        Row(f"{name}.{merged}", (queries, keys, keys), hidden, qkv_bias, layers, attention="grouped"),
        Row(f"{name}.{output}", (hidden,), inputs, output_bias, layers),
        *_head_norms(name, heads, layers, head_norms),
    )


def _head_norms(name: str, heads: Heads, layers: Sequence[int], head_norms: HeadNorms) -> tuple[Row, ...]:
    if head_norms == "none":
        return ()
    if head_norms == "cut_with_the_heads":
        queries, keys = Extent(heads.queries, "query_head", heads.width), Extent(heads.keys, "kv_head", heads.width)
    else:
        counts = (heads.queries, heads.keys) if head_norms == "whole_width" else (1, 1)
        queries, keys = (Extent(count * heads.width) for count in counts)
    return (
        Row(f"{name}.q_norm", (queries,), layers=layers, quantisable=False),
        Row(f"{name}.k_norm", (keys,), layers=layers, quantisable=False),
    )


def sinks(
    heads: int, layers: Sequence[int], *, name: str = "sinks", parent: str = "model.layers.#.self_attn"
) -> tuple[Row, ...]:
    """One number for each query head that takes what no token is worth; no rows where no layer has them."""
    if not layers:
        return ()
    return (Row(f"{parent}.{name}", (Extent(heads, "query_head"),), layers=layers, quantisable=False),)


def caches(model: Model, sliding: Sequence[int], layers: Sequence[int] | None = None) -> tuple[CacheRow, ...]:
    """Keys and values of every layer that attends: of all tokens, or of the last `sliding_window` where it slides."""
    slides = frozenset(sliding)
    full = tuple(layer for layer in (model.layers if layers is None else layers) if layer not in slides)
    if not sliding:
        return (cache(model, full),)
    if model.sliding_window is None:
        raise Missing(f"the config of {model.geometry.model_id} does not tell sliding_window")
    windowed = cache(model, sliding, model.sliding_window)
    return (cache(model, full), windowed) if full else (windowed,)


def cache(
    model: Model,
    layers: Sequence[int],
    window: int | None = None,
    heads: Heads | None = None,
    kind: CacheKind | None = None,
) -> CacheRow:
    """Keys and values of some layers, of heads that are the model's where not given; with a window they slide."""
    heads = heads or Heads(model.heads, model.kv_heads, model.head_dim)
    kind = kind or ("full" if window is None else "sliding")
    return CacheRow(layers, Extent(heads.keys, "kv_head"), 2 * heads.width, kind, window)
