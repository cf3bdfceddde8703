"""Dense feed-forward blocks."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.rows import Extent, Row


def gated(name: str, hidden_size: int, width: int, layers: Sequence[int], *, bias: bool = False) -> tuple[Row, ...]:
    """Gate and up projection merged into one column-cut weight, and the row-cut down projection."""
    column = Extent(width, "column")
    return (
        Row(f"{name}.gate_up_proj", (column, column), Extent(hidden_size), bias, layers),
        Row(f"{name}.down_proj", (Extent(hidden_size),), Extent(width, "row"), bias, layers),
    )


def gated_apart(name: str, hidden_size: int, width: int, layers: Sequence[int]) -> tuple[Row, ...]:
    """The same with gate and up projection as two weights, which some classes keep for the scales of each."""
    column, hidden = (Extent(width, "column"),), Extent(hidden_size)
    return (
        Row(f"{name}.gate_proj", column, hidden, layers=layers),
        Row(f"{name}.up_proj", column, hidden, layers=layers),
        Row(f"{name}.down_proj", (hidden,), Extent(width, "row"), layers=layers),
    )


def plain(
    name: str, names: tuple[str, str], hidden_size: int, width: int, layers: Sequence[int], *, bias: bool = True
) -> tuple[Row, ...]:
    """Two linear layers without a gate, under these names: the first column-cut, the second row-cut."""
    first, second = names
    return (
        Row(f"{name}.{first}", (Extent(width, "column"),), Extent(hidden_size), bias, layers),
        Row(f"{name}.{second}", (Extent(hidden_size),), Extent(width, "row"), bias, layers),
    )
