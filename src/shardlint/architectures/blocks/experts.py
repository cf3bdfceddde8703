"""Mixtures of experts: the router, and the experts as one weight in and one weight out."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.rows import ElementType, Extent, Row


def router(
    name: str,
    experts: int,
    hidden_size: int,
    layers: Sequence[int],
    *,
    element_type: ElementType = "model",
    quantisable: bool = False,
) -> Row:
    """The gate that every rank holds whole."""
    outs, contraction = (Extent(experts),), Extent(hidden_size)
    return Row(name, outs, contraction, layers=layers, element_type=element_type, quantisable=quantisable)


def gated_experts(name: str, experts: int, hidden_size: int, width: int, layers: Sequence[int]) -> tuple[Row, ...]:
    """Gate, up and down projection of `experts` experts, each `width` wide."""
    column, number = Extent(width, "expert_width"), Extent(experts, "expert")
    return (
        Row(f"{name}.w13", (column, column), Extent(hidden_size), layers=layers, experts=number),
        Row(f"{name}.w2", (Extent(hidden_size),), column, layers=layers, experts=number),
    )
