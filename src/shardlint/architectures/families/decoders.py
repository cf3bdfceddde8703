"""What decoders of one kind have in common: their layers put together, with the ends around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardlint.architectures.blocks.attention import caches
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms
from shardlint.architectures.model import Model
from shardlint.architectures.rows import Row, Rows

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
    sliding: Sequence[int] = (),
    norm_bias: bool = False,
    head_bias: bool = False,
) -> Rows:
    """A decoder with experts. All classes of this kind so far build their ends on every stage."""
    norms = layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers, bias=norm_bias)
    last = ends(model, on_every_stage=True, norm_bias=norm_bias, head_bias=head_bias)
    return Rows((*attention, *feed_forward, *norms, *last), caches(model, sliding), len(model.layers))
