"""What an engine does with a piece of the model that does not come out even over the ranks: types of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from shardlint.findings import Effect, Piece
from shardlint.findings.records import NamedTuple

Remainder = Literal["none", "first_ranks", "last_rank"]
StageRemainder = Literal["before_last", "last"]


class Cut(NamedTuple):
    """The rule for one kind of piece, applied in the order of the fields.

    The number of pieces is first padded up to a multiple of `pads_to`.  If the ranks do not divide it, `replicates`
    gives every rank a whole piece where the pieces divide the ranks, `remainder` says which ranks take one more, and
    what is left is refused with the effect `refuses` (None: it is never refused).
    """

    refuses: Effect | None = None
    pads_to: int = 1
    replicates: bool = False
    remainder: Remainder = "none"


class Kernels(NamedTuple):
    """What the kernels of one kind of card make of the experts of a rank; None where that is not known.

    The width of an expert is padded up to a multiple, that of MXFP4 experts together with the model's width.
    """

    width_pads_to: int | None = None
    mxfp4_width_pads_to: int | None = None
    mxfp4_hidden_pads_to: int | None = None
    refines_blocks: bool | None = None
    """Whether there is a kernel for FP8 blocks finer than the checkpoint's."""


UNKNOWN_KERNELS = Kernels()


class Cutting:
    """The cutting table of one engine in one version.

    `stage_remainder`: which pipeline stages hold one layer more where the layers do not divide (`before_last`: one
    each, counted backwards from the stage before the last; `last`: the last stage holds all of them).
    `expert_blocks_refine_to`: the smallest quantisation block, in elements, down to which the blocks of experts are
    refined when a shard is not whole blocks; 0 where the engine refuses such a shard.
    """

    def __init__(
        self,
        pieces: Mapping[Piece, Cut],
        stage_remainder: StageRemainder = "before_last",
        expert_blocks_refine_to: int = 0,
        kernels: Sequence[tuple[tuple[int, int], Kernels]] = (),
        usual_capability: str = "9.0",
    ) -> None:
        self.pieces = pieces
        self.stage_remainder = stage_remainder
        self.expert_blocks_refine_to = expert_blocks_refine_to
        self._kernels = tuple(kernels)
        self._usual_capability = usual_capability

    def __getitem__(self, piece: Piece) -> Cut:
        return self.pieces[piece]

    def kernels(self, capability: str | None = None) -> Kernels:
        """Those of a card by its compute capability as text ("9.0"), of the usual one where it is None."""
        major, dot, minor = (capability or self._usual_capability).partition(".")
        if not dot or not major.isdecimal() or not minor.isdecimal():
            return UNKNOWN_KERNELS
        own = (int(major), int(minor))
        return next((found for least, found in reversed(self._kernels) if own >= least), UNKNOWN_KERNELS)
