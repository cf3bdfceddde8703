"""Which values of one degree cut every row evenly, the other degrees fixed."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.architectures import HEADS_ONLY, known_pieces, rows_of
from shardlint.architectures.rows import Row, Rows
from shardlint.engines.cutting import Cutting
from shardlint.facts import Accelerator, Geometry
from shardlint.findings import Unknown
from shardlint.findings.records import NamedTuple
from shardlint.layout.laying_out import number_of_layers
from shardlint.layout.share import Uneven, first_uneven_piece, makeshift_blocks
from shardlint.layout.sizes import DEGREES, Degree, Sizes

MOST_VALUES = 1024
"""Values of a degree that are tried at most."""


class Pieces(NamedTuple):
    """All of a model that legality depends on."""

    rows: tuple[Row, ...]
    """Every kind and number of pieces once, and every quantised row whose blocks count."""
    layers: int | None
    basis: str
    """What is asked to come out even: "all rows", or what is known where the rows are not."""


class Legal:
    """Answers which values of a degree would do, for one model, one engine and what is known of the hardware.

    `gpus` is the number that the whole instance may use, and where it is None the model alone bounds the values;
    `capability` is the CUDA compute capability of the card, where it is known.  Every value is tried
    once.
    """

    def __init__(
        self, sizes: Sizes, pieces: Pieces, cutting: Cutting, gpus: int | None = None, capability: str | None = None
    ) -> None:
        self.sizes = sizes
        self.pieces = pieces
        self.cutting = cutting
        self.gpus = gpus
        self.capability = capability
        self._tried: dict[Sizes, Uneven | None] = {}
        self._values: dict[Degree, tuple[int, ...]] = {}

    @property
    def basis(self) -> str:
        """What was asked to come out even."""
        return self.pieces.basis

    def values(self, degree: Degree) -> tuple[int, ...]:
        """All legal values, ascending; empty where not even 1 fits the GPUs beside the other degrees."""
        if degree not in self._values:
            tried = range(1, self.most(degree) + 1)
            self._values[degree] = tuple(value for value in tried if self.fits(degree, value))
        return self._values[degree]

    def nearest(self, degree: Degree, value: int) -> tuple[int, ...]:
        """All legal values, the nearest to `value` first, of two equally near ones the larger first."""
        return tuple(sorted(self.values(degree), key=lambda other: (abs(other - value), -other)))

    def fits(self, degree: Degree, value: int) -> bool:
        """Whether every piece comes out even with this value."""
        return self.fault(degree, value) is None

    def fault(self, degree: Degree, value: int) -> Uneven | None:
        """The first piece that does not come out even with this value: None where it is legal."""
        return self._fault_of(self.sizes.with_degree(degree, value))

    def allows(self, sizes: Sizes) -> bool:
        """Whether every piece comes out even with other sizes altogether; the GPUs are not asked."""
        return self._fault_of(sizes) is None

    def _fault_of(self, sizes: Sizes) -> Uneven | None:
        if sizes not in self._tried:
            self._tried[sizes] = first_uneven_piece(sizes, self.pieces.rows, self.cutting, self.capability)
        return self._tried[sizes]

    def makeshifts(self, degree: Degree, value: int) -> tuple[Uneven, ...]:
        """The quantisation blocks that load with this value though they do not come out even."""
        return makeshift_blocks(self.sizes.with_degree(degree, value), self.pieces.rows, self.cutting, self.capability)

    def failures(self, degree: Degree) -> tuple[tuple[int, Uneven], ...]:
        """The values that are not legal, each with the first piece that does not come out even."""
        tried = ((value, self.fault(degree, value)) for value in range(1, self.most(degree) + 1))
        return tuple((value, fault) for value, fault in tried if fault is not None)

    def most(self, degree: Degree) -> int:
        """The largest value worth trying: what the GPUs leave beside the other degrees, and what the model has."""
        bounds = [MOST_VALUES]
        if self.gpus is not None:
            others = self.sizes.world_size // getattr(self.sizes, degree)
            bounds.append(self.gpus // others)
        if degree == "pipeline_parallel_size" and self.pieces.layers is not None:
            bounds.append(self.pieces.layers)
        if degree == "tensor_parallel_size":
            bounds.append(_query_heads(self.pieces.rows) or MOST_VALUES)
        return max(0, min(bounds))


def legal_values(
    sizes: Sizes,
    geometry: Geometry | Unknown,
    cutting: Cutting,
    *,
    rows: Rows | Unknown | None = None,
    pieces: Pieces | None = None,
    gpus: int | None = None,
    gpu: Accelerator | None = None,
) -> Legal:
    """What may stand beside these sizes, for a model that may be unknown; a size below 1 counts as 1.

    `gpus` is the number that the whole instance may use, over all its nodes; `rows` are the model's, worked out where
    not given, as are its `pieces`, and `gpu` the card where it is known.
    """
    if pieces is None:
        pieces = pieces_of(geometry, rows_of(geometry) if rows is None else rows)
    return Legal(_possible(sizes), pieces, cutting, gpus, gpu.compute_capability if gpu else None)


def pieces_of(geometry: Geometry | Unknown, rows: Rows | Unknown) -> Pieces:
    """What is known of a model's pieces."""
    if isinstance(geometry, Unknown):
        return Pieces((), None, "the GPUs only")
    if isinstance(rows, Rows):
        return Pieces(_single_pieces(rows.weights), rows.layers, "all rows")
    return Pieces(_single_pieces(known_pieces(geometry)), number_of_layers(geometry, rows), HEADS_ONLY)


def _single_pieces(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Every kind and number of pieces once, named by its first row, and every quantised row whose blocks count: all
    that legality depends on."""
    first: dict[Row, Row] = {}
    for row in rows:
        for bare in _bare(row):
            first.setdefault(bare, bare._replace(name=row.name))
    return tuple(first.values())


def _bare(row: Row) -> Iterator[Row]:
    """A row without what makes no difference to how it can be cut."""
    whole, tower = row.under_sequence_parallel, row.tower
    if row.scheme is not None and (row.scheme.musts or row.scheme.rounding == "down"):
        yield Row(
            "",
            row.outs,
            row.contraction,
            experts=row.experts,
            tower=tower,
            under_sequence_parallel=whole,
            scheme=row.scheme,
        )
    for extent in row.extents:
        if extent.piece != "whole":
            single = extent._replace(unit=1)
            yield Row("", (single,), tower=tower, under_sequence_parallel=whole)


def _possible(sizes: Sizes) -> Sizes:
    return sizes._replace(**{degree: max(1, getattr(sizes, degree)) for degree in DEGREES})


def _query_heads(rows: tuple[Row, ...]) -> int | None:
    heads = [extent.count for row in rows for extent in row.outs if extent.piece == "query_head"]
    return max(heads) if heads else None
