"""What a rank's share of a weight takes as its scheme stores it, and whether its blocks come out even."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

from shardlint.architectures.schemes import Companion, Dimension, Must, Scheme

DIMENSIONS_IN_WORDS: dict[Dimension, str] = {
    "outs": "outputs",
    "ins": "inputs",
    "width": "columns of every expert",
}


class Matrix(NamedTuple):
    """A rank's share of one layer of a row: its merged outputs by its inputs, `experts` times.

    `width` and `hidden` are the two dimensions of a weight of experts by what they mean; `width` is None elsewhere.
    """

    outs: tuple[int, ...]
    ins: int
    experts: int = 1
    width: int | None = None
    hidden: int = 1
    outs_are_cut: bool = False
    ins_are_cut: bool = False


class Split(NamedTuple):
    """Elements on a rank that are not whole blocks."""

    dimension: Dimension
    elements: int
    block: int
    scheme: str

    def __str__(self) -> str:
        what = f"{self.elements} {DIMENSIONS_IN_WORDS[self.dimension]} of a rank"
        return f"{what} are not whole blocks of {self.block}, as {self.scheme} has them"


def fitted(matrix: Matrix, scheme: Scheme, finest: int) -> Scheme | Split:
    """The scheme with the blocks that the engine takes for this share, or the block that it cannot have.

    `finest` is how fine the engine makes blocks of FP8 experts, 0 where it does not.
    """
    split = next(_splits(matrix, scheme), None)
    refinement = scheme.refinement
    if refinement is None or matrix.width is None or not (split or matrix.hidden % refinement.hidden):
        return split or scheme
    if refinement.how == "gcd":
        finer = gcd(refinement.block, matrix.width, matrix.hidden)
        least = finest or refinement.block
    else:
        finer, least = _halved(refinement.block, matrix.width, matrix.hidden), refinement.least
    if finer >= least:
        return refinement.becomes.with_blocks(refinement.block, finer)
    return split or Split("width", matrix.width, refinement.block, scheme.name)


def _halved(block: int, *dimensions: int) -> int:
    while block and any(dimension % block for dimension in dimensions):
        block //= 2
    return block


def _splits(matrix: Matrix, scheme: Scheme) -> Iterator[Split]:
    for must in scheme.musts:
        for elements in _bound(matrix, must):
            if elements % must.block:
                yield Split(must.dimension, elements, must.block, scheme.name)


def _bound(matrix: Matrix, must: Must) -> tuple[int, ...]:
    """The sizes that a rule holds for."""
    if must.dimension == "width":
        return () if matrix.width is None or (must.when == "cut" and not _is_cut(matrix)) else (matrix.width,)
    if must.dimension == "ins":
        return (matrix.ins,) if must.when != "cut" or matrix.ins_are_cut else ()
    if must.when == "always" or matrix.outs_are_cut:
        return matrix.outs
    return matrix.outs[:-1] if must.when == "merged_or_cut" else ()


def _is_cut(matrix: Matrix) -> bool:
    return matrix.outs_are_cut or matrix.ins_are_cut


def floored(matrix: Matrix, scheme: Scheme) -> Split | None:
    """The last block of the inputs that is dropped, where there is one."""
    if scheme.rounding == "up":
        return None
    blocks = (companion.ins for companion in scheme.companions if companion.spread == "blocks" and companion.ins)
    return next((Split("ins", matrix.ins, block, scheme.name) for block in blocks if matrix.ins % block), None)


def stored_bits(matrix: Matrix, scheme: Scheme | None, bias: bool, model_bits: int) -> int:
    """Bits of the weight, its bias, and all that lies beside it."""
    outs = sum(matrix.outs)
    if scheme is None:
        return matrix.experts * model_bits * (outs * matrix.ins + outs * bias)
    has_bias = bias if scheme.bias == "as_built" else scheme.bias == "always"
    weight = outs * (matrix.ins // scheme.words * scheme.words) * scheme.bits
    beside = sum(_beside(matrix, scheme, companion, model_bits) for companion in scheme.companions)
    return matrix.experts * (weight + beside + outs * has_bias * model_bits)


def _beside(matrix: Matrix, scheme: Scheme, companion: Companion, model_bits: int) -> int:
    bits = model_bits if companion.bits is None else companion.bits
    if companion.spread == "matrix":
        return bits
    if companion.spread == "projections":
        return bits * len(matrix.outs)
    up = scheme.rounding == "up"
    outs = sum(_blocks(out, companion.outs, up=True) for out in matrix.outs)
    return bits * outs * _blocks(matrix.ins, companion.ins, up=up)


def _blocks(elements: int, block: int | None, *, up: bool) -> int:
    if block is None:
        return 1
    return -(-elements // block) if up else elements // block
