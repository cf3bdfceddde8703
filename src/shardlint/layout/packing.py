"""What a rank's share of a weight takes as its scheme stores it, and whether its blocks come out even."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from shardlint.architectures.schemes import Companion, Dimension, Must, Scheme
from shardlint.findings.records import NamedTuple

DIMENSIONS_IN_WORDS: dict[Dimension, str] = {
    "outs": "outputs",
    "ins": "inputs",
    "width": "columns of every expert",
    "hidden": "inputs of every expert",
}


class Matrix(NamedTuple):
    """A rank's share of one layer of a row: its merged outputs by its inputs, `experts` times.

    `width` and `hidden` are the two dimensions of a weight of experts by what they mean; `width` is None elsewhere.
    `outs_over` and `ins_over` are the ranks that each dimension is cut over.
    """

    outs: tuple[int, ...]
    ins: int
    experts: int = 1
    width: int | None = None
    hidden: int = 1
    outs_over: int = 1
    ins_over: int = 1

    def over(self, dimension: Dimension) -> int:
        """The ranks that a dimension is cut over."""
        if dimension == "width":
            return max(self.outs_over, self.ins_over)
        return self.ins_over if dimension == "ins" else self.outs_over


class Split(NamedTuple):
    """Elements on a rank that are not whole blocks; `over` ranks share the dimension."""

    dimension: Dimension
    elements: int
    over: int
    block: int
    scheme: str

    def __str__(self) -> str:
        what = f"{self.elements} {DIMENSIONS_IN_WORDS[self.dimension]} of a rank"
        return f"{what} are not whole blocks of {self.block}, as {self.scheme} has them"


def fitted(matrix: Matrix, scheme: Scheme, finest: int) -> Scheme | Split:
    """The scheme with the blocks that the engine takes for this share, or the block that it cannot have.

    `finest` is how fine the engine makes blocks of FP8 experts, 0 where it does not.
    """
    split, refinement = first_split(matrix, scheme), scheme.refinement
    if split is None or refinement is None or matrix.width is None:
        return split or scheme
    if refinement.how == "gcd":
        finer = gcd(refinement.block, matrix.width, matrix.hidden)
        least = finest or refinement.block
    else:
        finer, least = _halved(refinement.block, matrix.width, matrix.hidden), refinement.least
    return refinement.becomes.with_blocks(refinement.block, finer) if finer >= least else split


def first_split(matrix: Matrix, scheme: Scheme) -> Split | None:
    """The first dimension that is not whole blocks, whatever the engine then does."""
    return next(_splits(matrix, scheme), None)


def _halved(block: int, *dimensions: int) -> int:
    while block and any(dimension % block for dimension in dimensions):
        block //= 2
    return block


def _splits(matrix: Matrix, scheme: Scheme) -> Iterator[Split]:
    for must in scheme.musts:
        for elements in _bound(matrix, must):
            if elements % must.block:
                yield Split(must.dimension, elements, matrix.over(must.dimension), must.block, scheme.name)
    refinement = scheme.refinement
    if refinement is not None and matrix.hidden % refinement.hidden:
        yield Split("hidden", matrix.hidden, 1, refinement.hidden, scheme.name)


def _bound(matrix: Matrix, must: Must) -> tuple[int, ...]:
    """The sizes that a rule holds for."""
    is_cut, merged = matrix.over(must.dimension) > 1, len(matrix.outs) > 1
    if (must.when == "cut" and not is_cut) or (must.when == "cut_and_not_merged" and (merged or not is_cut)):
        return ()
    if must.dimension == "ins":
        return (matrix.ins,)
    if must.dimension == "width":
        return () if matrix.width is None else (matrix.width,)
    return matrix.outs[:-1] if must.when == "merged_or_cut" and not is_cut else matrix.outs


def floored(matrix: Matrix, scheme: Scheme) -> Split | None:
    """The last block of the inputs that is dropped, where there is one."""
    if scheme.rounding == "up":
        return None
    blocks = (companion.ins for companion in scheme.companions if companion.spread == "blocks" and companion.ins)
    dimension: Dimension = "width" if matrix.ins == matrix.width else "ins"
    split = (block for block in blocks if matrix.ins % block)
    return next((Split(dimension, matrix.ins, matrix.ins_over, block, scheme.name) for block in split), None)


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
    # the projections of an expert are stored apart, those of a merged layer as one
    outputs = (sum(matrix.outs),) if matrix.width is None else matrix.outs
    outs = sum(_blocks(out, companion.outs, up=True) for out in outputs)
    return bits * (outs // companion.words * companion.words) * _blocks(matrix.ins, companion.ins, up=up)


def _blocks(elements: int, block: int | None, *, up: bool) -> int:
    if block is None:
        return 1
    return -(-elements // block) if up else elements // block
