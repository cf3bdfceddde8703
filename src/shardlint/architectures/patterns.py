"""Which layers of a model are of which kind, where its family decides that by a rule."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.model import Model

MAX_WINDOW_LAYERS = 28
"""What Qwen's config classes take where the key is absent."""


def listed_as_sliding(model: Model, otherwise: Sequence[int]) -> Sequence[int]:
    """The layers that `layer_types` calls sliding; `otherwise` where the config has no such list."""
    kinds = model.odd("layer_types")
    if not isinstance(kinds, list):
        return otherwise
    return tuple(layer for layer, kind in zip(model.layers, kinds, strict=False) if kind == "sliding_attention")


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


def qwen_sparse_layers(model: Model) -> Sequence[int]:
    """The layers that have experts: each `decoder_sparse_step`-th, less those of `mlp_only_layers`."""
    step, dense = model.odd_number("decoder_sparse_step", 1), frozenset(model.numbers("mlp_only_layers"))
    return tuple(layer for layer in model.layers if layer not in dense and step > 0 and (layer + 1) % step == 0)
