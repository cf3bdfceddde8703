"""One piece of arithmetic: a row of the model, cut by an engine's table, gives what one rank holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shardlint.architectures.rows import CacheRow, Extent, Row
from shardlint.engines.cutting import Cut, Cutting
from shardlint.findings import Effect, Piece
from shardlint.layout.sizes import Sizes

PIECES_IN_WORDS: dict[Piece, str] = {
    "query_head": "query heads",
    "kv_head": "KV heads",
    "vision_head": "heads of the vision tower",
    "state_head": "heads of the recurrent state",
    "state_group": "groups of the recurrent state",
    "column": "output columns",
    "row": "input rows",
    "vocabulary": "vocabulary rows",
    "expert": "experts",
    "expert_width": "columns of every expert",
    "whole": "elements",
}

BALANCED_EXPERTS = Cut(refuses="fails-while-loading")


class Uneven(NamedTuple):
    """A piece that does not come out even: `count` pieces of the row over `ways` ranks.

    `padded` is the number of pieces that the engine would really cut (the vocabulary is padded first).
    """

    piece: Piece
    row: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a piece
    padded: int
    ways: int
    effect: Effect

    def __str__(self) -> str:
        what = f"{self.count} {PIECES_IN_WORDS[self.piece]}"
        if self.padded != self.count:
            what += f", padded to {self.padded},"
        if self.piece == "kv_head":
            return f"{what} neither split nor replicate evenly over {self.ways} ranks"
        return f"{what} do not divide by {self.ways}"


class Division(NamedTuple):
    """A cutting table and the degrees that it is applied with."""

    cutting: Cutting
    tensor: int
    experts: int
    expert_parallel: bool
    redundant_experts: int | None = None
    """Copies of experts that load balancing adds to each layer; None where it is off."""

    @classmethod
    def of(cls, sizes: Sizes, cutting: Cutting) -> Division:
        balanced = sizes.enable_expert_parallel and sizes.enable_eplb
        return cls(
            cutting,
            sizes.tensor_parallel_size,
            sizes.expert_group_size,
            sizes.enable_expert_parallel,
            max(0, sizes.num_redundant_experts) if balanced else None,
        )

    def ways(self, piece: Piece) -> int:
        """Over how many ranks pieces of this kind are spread."""
        match piece:
            case "whole":
                return 1
            case "expert":
                return self.experts if self.expert_parallel else 1
            case "expert_width":
                return 1 if self.expert_parallel else self.experts
            case _:
                return self.tensor

    def share(self, extent: Extent, index: int = 0) -> int | None:
        """Pieces of a dimension on the rank that is number `index` of those it is spread over; None if refused."""
        count, cut = self._count(extent), self._cut(extent.piece)
        return _pieces(count, cut, self.ways(extent.piece), index)

    def _count(self, extent: Extent) -> int:
        return extent.count + (self.redundant_experts or 0) * (extent.piece == "expert")

    def _cut(self, piece: Piece) -> Cut:
        """The table's rule; load balancing wants as many experts on each rank, whatever the table says."""
        if piece == "expert" and self.redundant_experts is not None:
            return BALANCED_EXPERTS
        return self.cutting[piece]

    def elements(self, extent: Extent, index: int = 0) -> int | None:
        """Elements of a dimension on that rank."""
        pieces = self.share(extent, index)
        return None if pieces is None else pieces * extent.unit

    def uneven(self, row: Row) -> Iterator[Uneven]:
        """The dimensions of a row that the engine refuses to cut this way."""
        for extent in dict.fromkeys(row.extents):
            count, cut, ways = self._count(extent), self._cut(extent.piece), self.ways(extent.piece)
            if cut.refuses is not None and _pieces(count, cut, ways, 0) is None:
                padded = _up(count, cut.pads_to)
                yield Uneven(extent.piece, row.name, count, padded, ways, cut.refuses)

    def weights(self, row: Row, expert_index: int = 0) -> int | None:
        """Elements of one layer of a row on a rank; None where a dimension does not come out even."""
        outs = [self.elements(out) for out in row.outs]
        contraction = self.elements(row.contraction)
        experts = self.elements(row.experts, expert_index)
        if contraction is None or experts is None or None in outs:
            return None
        outputs = sum(out for out in outs if out is not None)
        return experts * (outputs * contraction + outputs * row.bias) * row.times

    def cache_elements(self, row: CacheRow) -> int | None:
        """Elements of one token and one layer in a cache on a rank."""
        heads = self.share(row.heads)
        return None if heads is None else heads * row.elements_per_head


def uneven_pieces(sizes: Sizes, rows: Iterable[Row], cutting: Cutting) -> tuple[Uneven, ...]:
    """The pieces that do not come out even, each kind of piece and number named once, by its first row."""
    division = Division.of(sizes, cutting)
    found: dict[tuple[str, int], Uneven] = {}
    for row in rows:
        for uneven in division.uneven(row):
            found.setdefault((uneven.piece, uneven.count), uneven)
    return tuple(found.values())


def _pieces(count: int, cut: Cut, ways: int, index: int) -> int | None:
    """Of `count` pieces over `ways` ranks, those of rank `index`; None where the table knows no way to do it."""
    padded = _up(count, cut.pads_to)
    each, more = divmod(padded, ways)
    if more == 0:
        return each
    if cut.replicates and padded < ways and ways % padded == 0:
        return 1
    if cut.remainder == "first_ranks":
        return each + (index < more)
    if cut.remainder == "last_rank":
        return each + (more if index == ways - 1 else 0)
    return None


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
