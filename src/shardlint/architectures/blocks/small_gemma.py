"""What small Gemmas have beside other decoders: layers that share caches, and embeddings for every layer."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Model
from shardlint.architectures.rows import CacheRow, Extent, Row

LAYER = "model.layers.#"


def layers_with_caches(model: Model) -> Sequence[int]:
    """All but the last `num_kv_shared_layers`, which read what earlier ones keep."""
    shared = model.odd_number("num_kv_shared_layers", 0)
    return model.layers[: max(len(model.layers) - shared, 0)]


def attention_of_shared_caches(
    model: Model, own: Sequence[int], sharing: Sequence[int], heads: Heads | None = None
) -> tuple[Row, ...]:
    """Layers with keys and values of their own, and layers that have queries alone."""
    heads, bias = heads or Heads(model.heads, model.kv_heads, model.head_dim), model.flag("attention_bias")
    name, hidden = f"{LAYER}.self_attn", Extent(model.hidden_size)
    rows: tuple[Row, ...] = ()
    if own:
        rows = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head", heads=heads, layers=own)
    if not sharing:
        return rows
    return (
        *rows,
        Row(f"{name}.q_proj", (Extent(heads.queries, "query_head", heads.width),), hidden, bias, sharing),
        Row(f"{name}.o_proj", (hidden,), Extent(heads.queries * heads.width, "row"), bias, sharing),
        norm(f"{name}.q_norm", heads.width, sharing),
    )


def caches_of_own(model: Model, own: Sequence[int], sliding: Sequence[int]) -> tuple[CacheRow, ...]:
    """Keys and values of those layers, windowed where they slide."""
    slides = frozenset(sliding)
    full = tuple(layer for layer in own if layer not in slides)
    windowed = tuple(layer for layer in own if layer in slides)
    return (
        *((cache(model, full),) if full else ()),
        *((cache(model, windowed, model.number("sliding_window")),) if windowed else ()),
    )


def embeddings_for_layers(model: Model, name: str) -> tuple[Row, ...]:
    """A second table of words with an embedding for every layer, and what mixes it in."""
    width, hidden, layers = model.odd_number("hidden_size_per_layer_input", 0), model.hidden_size, model.layers
    if not width:
        return ()
    every, words = width * len(layers), model.odd_number("vocab_size_per_layer_input", model.vocabulary)
    table = Row(
        f"{name}.embed_tokens_per_layer",
        (Extent(words, "vocabulary"),),
        Extent(every),
        stage="each",
        quantisable=False,
    )
    return (
        table,
        Row(f"{name}.per_layer_model_projection", (Extent(every, "column"),), Extent(hidden), stage="each"),
        Row(f"{name}.per_layer_projection_norm", (Extent(width),), stage="each", quantisable=False),
        Row(f"{LAYER}.per_layer_input_gate", (Extent(width),), Extent(hidden), layers=layers),
        Row(f"{LAYER}.per_layer_projection", (Extent(hidden),), Extent(width), layers=layers),
        norm(f"{LAYER}.post_per_layer_input_norm", hidden, layers),
    )
