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
from shardlint.layout.share import Uneven, makeshift_blocks, uneven_pieces
from shardlint.layout.sizes import DEGREES, Degree, Sizes

MOST_VALUES = 1024
"""Values of a degree that are tried at most."""


class Legal(NamedTuple):
    """Answers which values of a degree would do, for one model, one engine and what is known of the hardware."""

    sizes: Sizes
    rows: tuple[Row, ...]
    cutting: Cutting
    layers: int | None
    gpus: int | None
    """GPUs that the whole instance may use; None where unknown, and then the model alone bounds the values."""
    basis: str
    """What was asked to come out even: "all rows", or what was known where the rows were not."""
    capability: str | None = None
    """CUDA compute capability of the card, where it is known."""

    def values(self, degree: Degree) -> tuple[int, ...]:
        """All legal values, ascending; empty where not even 1 fits the GPUs beside the other degrees."""
        return tuple(value for value in range(1, self.most(degree) + 1) if not self.uneven(degree, value))

    def nearest(self, degree: Degree, value: int) -> tuple[int, ...]:
        """All legal values, the nearest to `value` first, of two equally near ones the larger first."""
        return tuple(sorted(self.values(degree), key=lambda other: (abs(other - value), -other)))

    def uneven(self, degree: Degree, value: int) -> tuple[Uneven, ...]:
        """The pieces that do not come out even with this value: none where it is legal."""
        return uneven_pieces(self.sizes.with_degree(degree, value), self.rows, self.cutting, self.capability)

    def makeshifts(self, degree: Degree, value: int) -> tuple[Uneven, ...]:
        """The quantisation blocks that load with this value though they do not come out even."""
        return makeshift_blocks(self.sizes.with_degree(degree, value), self.rows, self.cutting, self.capability)

    def failures(self, degree: Degree) -> tuple[tuple[int, Uneven], ...]:
        """The values that are not legal, each with the first piece that does not come out even."""
        tried = ((value, self.uneven(degree, value)) for value in range(1, self.most(degree) + 1))
        return tuple((value, uneven[0]) for value, uneven in tried if uneven)

    def most(self, degree: Degree) -> int:
        """The largest value worth trying: what the GPUs leave beside the other degrees, and what the model has."""
        bounds = [MOST_VALUES]
        if self.gpus is not None:
            others = self.sizes.world_size // getattr(self.sizes, degree)
            bounds.append(self.gpus // others)
        if degree == "pipeline_parallel_size" and self.layers is not None:
            bounds.append(self.layers)
        if degree == "tensor_parallel_size":
            bounds.append(_query_heads(self.rows) or MOST_VALUES)
        return max(0, min(bounds))


def legal_values(
    sizes: Sizes,
    geometry: Geometry | Unknown,
    cutting: Cutting,
    *,
    rows: Rows | Unknown | None = None,
    gpus: int | None = None,
    gpu: Accelerator | None = None,
) -> Legal:
    """What may stand beside these sizes, for a model that may be unknown; a size below 1 counts as 1.

    `gpus` is the number that the whole instance may use, over all its nodes; `rows` are the model's, worked out where
    not given, and `gpu` the card where it is known.
    """
    known, layers, basis = _what_is_known(geometry, rows_of(geometry) if rows is None else rows)
    return Legal(
        _possible(sizes), _single_pieces(known), cutting, layers, gpus, basis, gpu.compute_capability if gpu else None
    )


def _what_is_known(geometry: Geometry | Unknown, rows: Rows | Unknown) -> tuple[tuple[Row, ...], int | None, str]:
    if isinstance(geometry, Unknown):
        return (), None, "the GPUs only"
    if isinstance(rows, Rows):
        return rows.weights, rows.layers, "all rows"
    return known_pieces(geometry), number_of_layers(geometry, rows), HEADS_ONLY


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
