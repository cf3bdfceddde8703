"""Attention of DeepSeek V4: one latent head for keys and values, of old tokens in compressed form, and its caches."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import CacheRow, Extent, Row

NAME = "model.layers.#.attn"
INDEXED_RATIO = 4
"""Layers that compress so many tokens into one overlap them, and choose among the results by an index."""
SINKS_PAD_TO = 64
"""Query heads on a rank that the decode kernel takes at a time."""
BLOCK_TOKENS = 256
PAGE_TOKENS = 64
PAGE_BYTES = 576
"""Pages of every kind share one memory and are padded to a multiple of this."""
SCALE_BYTES = 8
INDEX_SCALE_BYTES = 4
FLOAT32_BYTES = 4


def compression_ratios(model: Model) -> dict[int, tuple[int, ...]]:
    """Tokens that are compressed into one -> the layers that do so."""
    ratios = model.numbers("compress_ratios")
    if len(ratios) < len(model.layers):
        raise Missing(f"the config of {model.geometry.model_id} does not tell compress_ratios of every layer")
    found: dict[int, tuple[int, ...]] = {}
    for layer in model.layers:
        if ratios[layer] > 1:
            found[ratios[layer]] = (*found.get(ratios[layer], ()), layer)
    return found


def compressed(model: Model) -> tuple[Row, ...]:
    """Attention of every layer, with the compressors and indexers of those that have them."""
    rank, width, layers = model.odd_number("q_lora_rank"), model.head_dim, model.layers
    groups = model.odd_number("o_groups")
    if not groups:
        raise Missing("o_groups is 0")
    hidden, output = Extent(model.hidden_size), groups * model.odd_number("o_lora_rank")
    per_group = Extent(model.heads * width // groups)
    sinks = Extent(model.heads, "query_head", share_pads_to=SINKS_PAD_TO)
    return (
        Row(f"{NAME}.attn_sink", (sinks,), layers=layers, element_type="float32", quantisable=False),
        Row(f"{NAME}.fused_wqa_wkv", (Extent(rank), Extent(width)), hidden, layers=layers, fuses=("wq_a", "wkv")),
        norm(f"{NAME}.q_norm", rank, layers),
        Row(f"{NAME}.wq_b", (Extent(model.heads, "query_head", width),), Extent(rank), layers=layers),
        norm(f"{NAME}.kv_norm", width, layers),
        Row(f"{NAME}.wo_a", (Extent(output, "column"),), per_group, layers=layers),
        Row(f"{NAME}.wo_b", (hidden,), Extent(output, "row"), layers=layers, attention="latent"),
        *(row for ratio, some in compression_ratios(model).items() for row in _compressors(model, ratio, some)),
    )


def _compressors(model: Model, ratio: int, layers: Sequence[int]) -> tuple[Row, ...]:
    rows = _compressor(model, f"{NAME}.compressor", ratio, model.head_dim, layers)
    if ratio != INDEXED_RATIO:
        return rows
    name, heads, width = f"{NAME}.indexer", model.odd_number("index_n_heads"), model.odd_number("index_head_dim")
    queries, rank = (Extent(heads * width),), Extent(model.odd_number("q_lora_rank"))
    weights = (Extent(heads),)
    return (
        *rows,
        Row(f"{name}.wq_b", queries, rank, layers=layers),
        Row(f"{name}.weights_proj", weights, Extent(model.hidden_size), layers=layers, quantisable=False),
        *_compressor(model, f"{name}.compressor", ratio, width, layers),
    )


def _compressor(model: Model, name: str, ratio: int, width: int, layers: Sequence[int]) -> tuple[Row, ...]:
    """Keys and gates of `ratio` tokens become one key; with overlap there are two of each."""
    wide = Extent(width * (2 if ratio == INDEXED_RATIO else 1))
    fuses = ("wkv", "wgate")
    merged = Row(f"{name}.fused_wkv_wgate", (wide, wide), Extent(model.hidden_size), layers=layers, fuses=fuses)
    return (
        Row(f"{name}.ape", (Extent(ratio),), wide, layers=layers, element_type="float32", quantisable=False),
        merged._replace(quantisable=False),
        norm(f"{name}.norm", width, layers),
    )


def compressed_caches(model: Model) -> tuple[CacheRow, ...]:
    """Pages of each kind: the last tokens as they are, old ones compressed, what is being compressed, and the index."""
    if model.sliding_window is None:
        raise Missing(f"the config of {model.geometry.model_id} does not tell sliding_window")
    entry = model.head_dim + model.odd_number("qk_rope_head_dim") + SCALE_BYTES
    recent = _pages(model.layers, PAGE_TOKENS * entry, PAGE_TOKENS)._replace(
        kind="sliding", window=model.sliding_window
    )
    old = (row for ratio, layers in compression_ratios(model).items() for row in _old(model, ratio, layers, entry))
    return (recent, *old)


def _old(model: Model, ratio: int, layers: Sequence[int], entry: int) -> tuple[CacheRow, ...]:
    row = _pages(layers, BLOCK_TOKENS // ratio * entry, BLOCK_TOKENS)
    if ratio != INDEXED_RATIO:
        # eight tokens a page, which the engine counts by the tokens of the page of keys whose memory it shares
        state = _pages(layers, 8 * 2 * model.head_dim * FLOAT32_BYTES, PAGE_TOKENS)
        return (row, state._replace(kind="sliding", window=ratio * PAGE_TOKENS // 8))
    width, window = model.odd_number("index_head_dim"), 2 * ratio
    index = _pages(layers, BLOCK_TOKENS // ratio * (width + INDEX_SCALE_BYTES), BLOCK_TOKENS)
    states = (_pages(layers, ratio * 4 * size * FLOAT32_BYTES, ratio) for size in (model.head_dim, width))
    return (row, index._replace(kind="index"), *(state._replace(kind="sliding", window=window) for state in states))


def _pages(layers: Sequence[int], page_bytes: int, tokens: int) -> CacheRow:
    padded = -(-page_bytes // PAGE_BYTES) * PAGE_BYTES
    return CacheRow(layers, Extent(1), padded, element="byte", tokens=tokens)
