"""One piece of arithmetic: a row of the model, cut by an engine's table, gives what one rank holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.architectures.rows import CacheRow, Extent, Row, SequenceParallel, Tower
from shardlint.engines.cutting import UNKNOWN_KERNELS, Cut, Cutting, Kernels
from shardlint.findings import Effect, Piece
from shardlint.findings.records import NamedTuple
from shardlint.layout.packing import Matrix, Split, first_split, fitted, floored, stored_bits
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
    "quantisation_block": "blocks of a quantised weight",
    "whole": "elements",
}

BALANCED_EXPERTS = Cut(refuses="fails-while-loading")


class Uneven(NamedTuple):
    """A piece that does not come out even: `count` pieces of the row over `ways` ranks.

    `padded` is the number of pieces that the engine would really cut (the vocabulary is padded first).  Of a
    quantised weight, `count` elements on a rank are not whole blocks of `ways`, and `split` says the rest.
    """

    piece: Piece
    row: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a piece
    padded: int
    ways: int
    effect: Effect
    split: Split | None = None
    too_few: bool = False
    """Whether they would come out even, but the class wants one for each rank."""

    def __str__(self) -> str:
        if self.split is not None:
            return f"{self.split} ({self.row})"
        what = f"{self.count} {PIECES_IN_WORDS[self.piece]}"
        if self.padded != self.count:
            what += f", padded to {self.padded},"
        if self.too_few:
            return f"{what} are fewer than the {self.ways} ranks of tensor parallelism"
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
    whole_shared: frozenset[SequenceParallel] = frozenset()
    """The kinds of rows that are whole on every rank because MoE layers work sequence-parallel."""
    whole_towers: frozenset[Tower] = frozenset()
    """The kinds of towers that are whole on every rank."""
    kernels: Kernels = UNKNOWN_KERNELS
    towers: bool = True
    """Whether the towers of a multimodal model are built."""
    tables_on_host: bool = True
    """Whether tables of embeddings beside that of the words lie in the host's memory."""
    world: int = 1
    """All ranks, those of other stages too."""

    @classmethod
    def of(cls, sizes: Sizes, cutting: Cutting, rows: Iterable[Row] = (), capability: str | None = None) -> Division:
        """For a card of that CUDA compute capability; `rows` are those that the division will be asked for."""
        balanced = sizes.enable_expert_parallel and sizes.enable_eplb
        return cls(
            cutting,
            sizes.tensor_parallel_size,
            sizes.expert_group_size,
            sizes.enable_expert_parallel,
            max(0, sizes.num_redundant_experts) if balanced else None,
            _whole_shared(sizes),
            _whole_towers(sizes, rows),
            cutting.kernels(capability),
            not sizes.language_model_only,
            sizes.engram_cpu_offload,
            sizes.world_size,
        )

    def is_on_host(self, row: Row) -> bool:
        """Whether a row takes none of the GPU's memory."""
        return row.side_table and self.tables_on_host

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
        if extent.one_a_rank and extent.count < self.tensor:
            return None
        if extent.piece == "whole" and not extent.least_tensor_share:
            return _up(extent.count, extent.share_pads_to)
        count, cut = self._count(extent), self._cut(extent)
        pieces = _pieces(count, cut, self.ways(extent.piece), index)
        return None if pieces is None else _up(pieces, extent.share_pads_to)

    def _has_too_few(self, extent: Extent) -> bool:
        return extent.one_a_rank and extent.count < self.tensor

    def _count(self, extent: Extent) -> int:
        least = extent.least_tensor_share
        if least and self.tensor > 1 and not self.expert_parallel and extent.count // self.tensor < least:
            return least * self.tensor
        return extent.count + (self.redundant_experts or 0) * (extent.piece == "expert" and extent.balanceable)

    def _cut(self, extent: Extent) -> Cut:
        """The table's rule; load balancing wants as many experts on each rank, whatever the table says."""
        if extent.piece == "expert" and extent.balanceable and self.redundant_experts is not None:
            return BALANCED_EXPERTS
        return self.cutting[extent.piece]

    def elements(self, extent: Extent, index: int = 0) -> int | None:
        """Elements of a dimension on that rank."""
        pieces = self.share(extent, index)
        return None if pieces is None else pieces * extent.unit

    def uneven(self, row: Row) -> Iterator[Uneven]:
        """The dimensions of a row that the engine refuses to cut this way, else the blocks of its storage."""
        found = tuple(self._uneven_extents(row))
        return iter(found) if found else self._uneven_blocks(row)

    def _uneven_extents(self, row: Row) -> Iterator[Uneven]:
        for extent in dict.fromkeys(filter(_may_be_uneven, self._as_cut(row).extents)):
            count, cut, ways = self._count(extent), self._cut(extent), self.ways(extent.piece)
            if cut.refuses is not None and _pieces(count, cut, ways, 0) is None:
                padded = _up(count, cut.pads_to)
                yield Uneven(extent.piece, row.name, count, padded, ways, cut.refuses)
            elif self._has_too_few(extent):
                yield Uneven(extent.piece, row.name, count, count, self.tensor, "fails-while-loading", too_few=True)
            elif extent.divides_by_world and count % self.world:
                yield Uneven(extent.piece, row.name, count, count, self.world, "fails-while-loading")

    def _uneven_blocks(self, row: Row) -> Iterator[Uneven]:
        effect = self.cutting["quantisation_block"].refuses
        matrix = self.matrix(row) if row.scheme and row.scheme.musts and effect else None
        if matrix is None or row.scheme is None or effect is None:
            return
        split = fitted(matrix, row.scheme, self._finest_blocks)
        if isinstance(split, Split):
            yield self._split_piece(row, split, effect)

    def makeshifts(self, row: Row) -> Iterator[Uneven]:
        """What loads though its blocks do not come out even: finer ones, or scales that lose a part of one."""
        matrix = self.matrix(row) if row.scheme else None
        scheme = fitted(matrix, row.scheme, self._finest_blocks) if matrix and row.scheme else None
        if matrix is None or row.scheme is None or scheme is None or isinstance(scheme, Split):
            return
        if (split := first_split(matrix, row.scheme)) is not None:
            yield self._split_piece(row, split, "slow")
        if (split := floored(matrix, scheme)) is not None:
            yield self._split_piece(row, split, "misbehaves")

    @staticmethod
    def _split_piece(row: Row, split: Split, effect: Effect) -> Uneven:
        return Uneven("quantisation_block", row.name, split.elements, split.elements, split.block, effect, split)

    @property
    def _finest_blocks(self) -> int:
        """How fine the blocks of FP8 experts may get; 0 where neither table nor card know finer ones."""
        return self.cutting.expert_blocks_refine_to if self.kernels.refines_blocks is not False else 0

    def bits(self, row: Row, model_bits: int, expert_index: int = 0) -> int | None:
        """Bits of one layer of a row on a rank, for elements of `model_bits` where it is not packed; None where a
        dimension or a block does not come out even, or the card's padding is not known."""
        matrix = self.matrix(row, expert_index)
        if matrix is None:
            return None
        scheme = fitted(matrix, row.scheme, self._finest_blocks) if row.scheme else None
        return None if isinstance(scheme, Split) else row.times * stored_bits(matrix, scheme, row.bias, model_bits)

    def matrix(self, row: Row, expert_index: int = 0) -> Matrix | None:
        """What a rank has of one layer of a row; None where a dimension does not come out even."""
        row = self._as_cut(row)
        ins, experts = self._padded(row, row.contraction), self.elements(row.experts, expert_index)
        known = tuple([padded for out in row.outs if (padded := self._padded(row, out)) is not None])
        if ins is None or experts is None or len(known) < len(row.outs):
            return None
        pieces = [out.piece for out in row.outs]
        is_width = row.contraction.piece == "expert_width"
        width = is_width or "expert_width" in pieces
        whole = is_width or not width
        return Matrix(
            outs=known,
            ins=ins,
            experts=experts,
            width=(ins if whole else known[0]) if width else None,
            hidden=known[0] if whole else ins,
            outs_over=max(map(self.ways, pieces)),
            ins_over=self.ways(row.contraction.piece),
        )

    def _as_cut(self, row: Row) -> Row:
        """A row as this division takes it: whole where its tower is, or where tokens are shared out instead."""
        if row.tower not in self.whole_towers and row.under_sequence_parallel not in self.whole_shared:
            return row
        outs = tuple(out._replace(piece="whole") for out in row.outs)
        return row._replace(outs=outs, contraction=row.contraction._replace(piece="whole"))

    def _padded(self, row: Row, extent: Extent) -> int | None:
        """Elements of a dimension of a row, padded for the card where the row is one of experts."""
        elements = self.elements(extent)
        if row.experts.piece != "expert" or elements is None:
            return elements
        width = extent.piece == "expert_width"
        if row.scheme is not None and row.scheme.padded:
            multiple = self.kernels.mxfp4_width_pads_to if width else self.kernels.mxfp4_hidden_pads_to
        elif row.scheme is None and row.renormalised and width:
            multiple = self.kernels.width_pads_to
        else:
            return elements
        return None if multiple is None else _up(elements, multiple)

    def needs_the_card(self, row: Row) -> bool:
        """Whether what a rank holds of a row depends on a card that nothing is known of."""
        is_padded = row.renormalised if row.scheme is None else row.scheme.padded
        return row.experts.piece == "expert" and is_padded and self.kernels.width_pads_to is None

    def cache_elements(self, row: CacheRow) -> int | None:
        """Elements of one token and one layer in a cache on a rank."""
        heads = self.share(row.heads)
        return None if heads is None else heads * row.elements_per_head


def _may_be_uneven(extent: Extent) -> bool:
    return extent.piece != "whole" or extent.one_a_rank or extent.divides_by_world


def _whole_shared(sizes: Sizes) -> frozenset[SequenceParallel]:
    if not sizes.sequence_parallel_experts:
        return frozenset()
    return frozenset(("whole",) if sizes.pipeline_parallel_size > 1 else ("whole", "whole_without_stages"))


def _whole_towers(sizes: Sizes, rows: Iterable[Row]) -> frozenset[Tower]:
    if sizes.mm_encoder_tp_mode == "data":
        return frozenset({"by_mode", "by_mode_or_uneven"})
    ways = sizes.tensor_parallel_size
    heads = (out for row in rows if row.tower == "by_mode_or_uneven" for out in row.outs if out.piece == "vision_head")
    return frozenset({"by_mode_or_uneven"}) if any(out.count % ways for out in heads) else frozenset()


def rows_in_use(division: Division, rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows that the engine builds at all: towers are left out on demand."""
    return tuple(row for row in rows if row.tower == "none" or division.towers)


def uneven_pieces(
    sizes: Sizes, rows: Iterable[Row], cutting: Cutting, capability: str | None = None
) -> tuple[Uneven, ...]:
    """The pieces that do not come out even, each kind of piece and number named once, by its first row."""
    rows = tuple(rows)
    division = Division.of(sizes, cutting, rows, capability)
    return _once(map(division.uneven, rows_in_use(division, rows)))


def first_uneven_piece(
    sizes: Sizes, rows: Iterable[Row], cutting: Cutting, capability: str | None = None
) -> Uneven | None:
    """The first of them, sought no further; None where all come out even."""
    rows = tuple(rows)
    division = Division.of(sizes, cutting, rows, capability)
    return next((uneven for row in rows_in_use(division, rows) for uneven in division.uneven(row)), None)


def makeshift_blocks(
    sizes: Sizes, rows: Iterable[Row], cutting: Cutting, capability: str | None = None
) -> tuple[Uneven, ...]:
    """What loads though its blocks do not come out even, each number of elements named once for each effect."""
    rows = tuple(rows)
    division = Division.of(sizes, cutting, rows, capability)
    return _once(map(division.makeshifts, rows_in_use(division, rows)))


def _once(pieces: Iterable[Iterator[Uneven]]) -> tuple[Uneven, ...]:
    found: dict[tuple[str, int, int, str], Uneven] = {}
    for of_row in pieces:
        for uneven in of_row:
            found.setdefault((uneven.piece, uneven.count, uneven.ways, uneven.effect), uneven)
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
