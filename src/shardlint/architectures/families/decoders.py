"""What decoders of one kind have in common: their layers put together, with the ends around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardlint.architectures.blocks.attention import caches
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms
from shardlint.architectures.model import Model
from shardlint.architectures.rows import CacheRow, Row, Rows

Family = Callable[[Model], Rows]

MLP = "model.layers.#.mlp"


def dense(
    model: Model,
    attention: Sequence[Row],
    *,
    mlp_bias: bool = False,
    norms: Sequence[str] = BEFORE_THE_BLOCKS,
    norm_bias: bool = False,
    sliding: Sequence[int] = (),
    ends_on_every_stage: bool = False,
) -> Rows:
    """A decoder whose every layer has attention and one gated MLP."""
    mlp = gated(MLP, model.hidden_size, model.number("intermediate_size"), model.layers, bias=mlp_bias)
    layer = (*attention, *mlp, *layer_norms(norms, model.hidden_size, model.layers, bias=norm_bias))
    last = ends(model, on_every_stage=ends_on_every_stage, norm_bias=norm_bias)
    return Rows((*layer, *last), caches(model, sliding), len(model.layers))


def sparse(
    model: Model,
    attention: Sequence[Row],
    feed_forward: Sequence[Row],
    *,
    norms: Sequence[str] = BEFORE_THE_BLOCKS,
    norm_bias: bool = False,
    sliding: Sequence[int] = (),
    cache_rows: tuple[CacheRow, ...] | None = None,
    ends_on_every_stage: bool = True,
    head_bias: bool = False,
    tied: bool | None = None,
) -> Rows:
    """A decoder with experts. `cache_rows` are given where its caches are not keys and values of the model's heads.

    `tied` is False of classes that build an output head whatever the config says.
    """
    layer = (*attention, *feed_forward, *layer_norms(norms, model.hidden_size, model.layers, bias=norm_bias))
    last = ends(model, on_every_stage=ends_on_every_stage, norm_bias=norm_bias, head_bias=head_bias, tied=tied)
    kept = caches(model, sliding) if cache_rows is None else cache_rows
    return Rows((*layer, *last), kept, len(model.layers))


def dense_beside(
    model: Model, moe: Sequence[int], width_key: str = "intermediate_size", *, name: str = MLP, bias: bool = False
) -> tuple[Row, ...]:
    """The gated MLP of the layers that have no experts; no rows where all have."""
    sparse_layers = frozenset(moe)
    layers = tuple(layer for layer in model.layers if layer not in sparse_layers)
    return gated(name, model.hidden_size, model.odd_number(width_key), layers, bias=bias) if layers else ()
