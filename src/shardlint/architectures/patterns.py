"""Which layers of a model are of which kind, where its family decides that by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardlint.architectures.model import MOST_LAYERS, Model

MAX_WINDOW_LAYERS = 28
"""What Qwen's config classes take where the key is absent."""


def listed_as(model: Model, key: str, wanted: str, otherwise: Sequence[int] = ()) -> Sequence[int]:
    """The layers of one kind in a list of kinds; `otherwise` where the config has no such list."""
    kinds = model.odd(key)
    if not isinstance(kinds, list):
        return otherwise
    return tuple(layer for layer, kind in zip(model.layers, kinds, strict=False) if kind == wanted)


def listed_as_sliding(model: Model, otherwise: Sequence[int]) -> Sequence[int]:
    """The layers that `layer_types` calls sliding; `otherwise` where the config has no such list."""
    return listed_as(model, "layer_types", "sliding_attention", otherwise)


def every_layer_slides(model: Model) -> Sequence[int]:
    """All layers as soon as there is a window at all (Mistral, Phi-3, Mixtral)."""
    return listed_as_sliding(model, model.layers if model.sliding_window else ())


def qwen_sliding_layers(model: Model) -> Sequence[int]:
    """A window counts only where it is switched on, and from `max_window_layers` upwards (Qwen2, Qwen3)."""
    if not model.flag("use_sliding_window") or not model.sliding_window:
        return ()
    return listed_as_sliding(model, model.layers[model.odd_number("max_window_layers", MAX_WINDOW_LAYERS) :])


def three_of_four_slide(model: Model) -> Sequence[int]:
    """All but each fourth layer, where there is a window (OLMo 3, EXAONE 4)."""
    return listed_as_sliding(model, all_but_each(model, 4)) if model.sliding_window else ()


def all_but_each(model: Model, period: int) -> Sequence[int]:
    """All layers but the last of each `period`."""
    return tuple(layer for layer in model.layers if period < 1 or (layer + 1) % period)


def each(model: Model, period: int) -> Sequence[int]:
    """The last layer of each `period`; none where the period is 0."""
    return tuple(layer for layer in model.layers if period and (layer + 1) % period == 0)


def not_zero(model: Model, marks: Any, otherwise: Sequence[int]) -> Sequence[int]:
    """The layers whose entry in a list of numbers is not 0; `otherwise` where there is no such list."""
    if not isinstance(marks, list):
        return otherwise
    return tuple(layer for layer, mark in zip(model.layers, marks, strict=False) if mark)


def deepseek_sparse_layers(model: Model) -> Sequence[int]:
    """Each `moe_layer_freq`-th layer from the `first_k_dense_replace`-th on (DeepSeek, Kimi, GLM-4.5)."""
    dense, step = model.odd_number("first_k_dense_replace", 0), model.odd_number("moe_layer_freq", 1)
    return tuple(layer for layer in model.layers[dense:] if step and layer % step == 0)


def indexed_layers(model: Model) -> Sequence[int]:
    """The layers that have an indexer of their own instead of sharing the one before (DeepSeek V3.2, GLM-5)."""
    pattern, period = model.odd("index_topk_pattern"), model.odd_number("index_topk_freq", 1)
    if isinstance(pattern, (str, list)):
        marks = [*pattern[: len(model.layers)], *"F" * (len(model.layers) - len(pattern))]
        return tuple(layer for layer, mark in zip(model.layers, marks, strict=True) if mark != "S")
    past = model.odd_number("index_skip_topk_offset", 2) - 1
    return tuple(layer for layer in model.layers if period and max(layer - past, 0) % period == 0)


def ernie_sparse_layers(model: Model) -> Sequence[int]:
    """Each `moe_layer_interval`-th layer of a range whose last layer counts."""
    start, last = model.odd_number("moe_layer_start_index", 0), model.odd_number("moe_layer_end_index", MOST_LAYERS)
    period = model.odd_number("moe_layer_interval", 1)
    return tuple(layer for layer in each(model, period) if start <= layer <= last)


def llama4_chunked_layers(model: Model) -> Sequence[int]:
    """The layers with rotary positions: those marked in `no_rope_layers`, else all but each fourth."""
    if not model.odd("attention_chunk_size"):
        return ()
    period = model.odd_number("no_rope_layer_interval", 4)
    return not_zero(model, model.odd("no_rope_layers") or None, all_but_each(model, period))


def qwen_sparse_layers(model: Model) -> Sequence[int]:
    """The layers that have experts: each `decoder_sparse_step`-th, less those of `mlp_only_layers`."""
    step, dense = model.odd_number("decoder_sparse_step", 1), frozenset(model.numbers("mlp_only_layers"))
    return tuple(layer for layer in model.layers if layer not in dense and step > 0 and (layer + 1) % step == 0)
