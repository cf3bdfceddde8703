"""Mixtures of experts: the router, the experts as one weight in and one weight out, and the shared experts."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.model import Model
from shardlint.architectures.rows import ElementType, Extent, Row, SequenceParallel


def router(
    name: str,
    experts: int,
    hidden_size: int,
    layers: Sequence[int],
    *,
    bias: bool = False,
    element_type: ElementType = "model",
    quantisable: bool = False,
) -> Row:
    """The gate that every rank holds whole."""
    outs, contraction = (Extent(experts),), Extent(hidden_size)
    return Row(name, outs, contraction, bias, layers, element_type=element_type, quantisable=quantisable)


def correction_bias(name: str, experts: int, layers: Sequence[int]) -> Row:
    """What is added to the scores to balance the experts, always in 32 bits."""
    outs = (Extent(experts),)
    return Row(f"{name}.e_score_correction_bias", outs, layers=layers, element_type="float32", quantisable=False)


def gated_experts(
    name: str,
    experts: int,
    hidden_size: int,
    width: int,
    layers: Sequence[int],
    *,
    bias: bool = False,
    renormalised: bool = False,
    one_a_rank: bool = False,
    balanceable: bool = True,
) -> tuple[Row, ...]:
    """Gate, up and down projection of `experts` experts, each `width` wide.

    With `one_a_rank` the class refuses more ranks of tensor parallelism than there are experts; one that knows nothing
    of expert load balancing has none that are `balanceable`.
    """
    column, hidden = Extent(width, "expert_width"), Extent(hidden_size)
    number = Extent(experts, "expert", one_a_rank=one_a_rank, balanceable=balanceable)
    return (
        Row(f"{name}.w13", (column, column), hidden, bias, layers, experts=number, renormalised=renormalised),
        Row(f"{name}.w2", (hidden,), column, bias, layers, experts=number, renormalised=renormalised),
    )


def is_renormalised(model: Model, *, corrected: bool) -> bool:
    """Whether the chosen scores are made to add up to one, or come from a sigmoid, as the engine sorts its routers.

    `corrected` routers have a correction bias, and count only where they are sigmoids that are renormalised.
    """
    sigmoid, renormalised = model.odd("scoring_func", "softmax") == "sigmoid", model.flag("norm_topk_prob")
    return sigmoid and renormalised if corrected else sigmoid or renormalised


def shared_experts(
    name: str,
    hidden_size: int,
    width: int,
    layers: Sequence[int],
    *,
    bias: bool = False,
    under_sequence_parallel: SequenceParallel = "cut",
) -> tuple[Row, ...]:
    """The MLP that every token goes through beside its experts; no rows where it has no width."""
    if not width:
        return ()
    rows = gated(name, hidden_size, width, layers, bias=bias)
    return tuple(row._replace(under_sequence_parallel=under_sequence_parallel) for row in rows)
