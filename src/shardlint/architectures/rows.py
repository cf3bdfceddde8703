"""A model as rows: every weight and every cache that it has, with what each may be cut into.

A model does not know how it will be split: nothing here says how many ranks there are.  `shardlint.layout` cuts the
rows by an engine's cutting table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shardlint.architectures.schemes import Scheme
from shardlint.findings import Piece, Unknown
from shardlint.findings.records import NamedTuple

Stage = Literal["layer", "first", "last", "ends", "each"]
"""Which pipeline stages hold a row: those that hold its layers, the first, the last, both of these, or every one."""

ElementType = Literal["model", "float32", "int32"]
"""The type of a row's elements: `model` is the type that the engine builds the model in."""

CacheKind = Literal["full", "sliding", "chunked", "latent", "index", "cross"]
"""Keys and values of all tokens, of the last ones or of a chunk; the latent of MLA; the keys of a sparse index."""

CacheElement = Literal["cache", "model", "byte"]
"""What an element of a cache is: of the cache's type, always of the model's, or a byte of a layout of its own."""

Tower = Literal["none", "cut", "by_mode", "by_mode_or_uneven"]
"""Whether a row belongs to a vision or audio tower, and when that is whole on every rank instead of cut: never,
under `--mm-encoder-tp-mode data`, or also by itself where its heads do not divide."""

SequenceParallel = Literal["cut", "whole", "whole_without_stages"]
"""What sequence-parallel MoE layers (TP and DP with expert parallelism) do to a row: nothing, or every rank holds it
whole, in some classes only where there are no pipeline stages."""

AttentionKind = Literal["grouped", "latent"]
"""Attention whose heads share keys and values (MHA, GQA, MQA), and MLA."""


class Extent(NamedTuple):
    """One dimension of a row: `count` pieces of `unit` elements each (32 query heads of 128).

    A rank's share, in pieces, is padded up to a multiple of `share_pads_to`.  With `one_a_rank` the class refuses to be
    built on more ranks of tensor parallelism than there are pieces.  Experts are `balanceable` where the class takes
    part in expert load balancing.  With `divides_by_world` the class wants the pieces to divide by the number of all
    ranks, whatever it cuts them into.  A width of experts that are cut is padded until it divided by the tensor
    parallel size alone is `least_tensor_share`.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of an extent
    piece: Piece = "whole"
    unit: int = 1
    share_pads_to: int = 1
    one_a_rank: bool = False
    balanceable: bool = True
    divides_by_world: bool = False
    least_tensor_share: int = 0


ONE = Extent(1)
"""The contraction of a vector (a norm, a bias that stands alone)."""


class Row(NamedTuple):
    """One weight of the model, or the same weight of many layers.

    `name` is the engine's module path with `#` for the layer.  `outs` are its outputs, several where projections are
    merged into one weight and each is cut for itself; `contraction` is the dimension that the product sums over.
    `bias` adds one element per output, which is cut as the outputs are.  `experts` repeats the row for every expert.
    `fuses` are the last words of the names that the checkpoint has instead (q_proj, k_proj, v_proj), none where it has
    the row as it is.  `quantisable` is what a quantised checkpoint may pack where its own lists do not forbid it: no
    norm, embedding, convolution or vector.
    """

    name: str
    outs: tuple[Extent, ...]
    contraction: Extent = ONE
    bias: bool = False
    layers: Sequence[int] = ()
    stage: Stage = "layer"
    element_type: ElementType = "model"
    quantisable: bool = True
    times: int = 1
    experts: Extent = ONE
    fuses: tuple[str, ...] = ()
    tower: Tower = "none"
    under_sequence_parallel: SequenceParallel = "cut"
    attention: AttentionKind | None = None
    """Set on one row of every layer that attends with a cache: some methods add scales to each of these."""
    renormalised: bool = False
    """Of experts: the router renormalises its top-k or is a sigmoid, which lets some cards take a padded kernel."""
    side_table: bool = False
    """A table of embeddings beside that of the words, which the engine keeps in the host's memory unless told not to,
    and which few methods of quantisation know."""
    whole_if_packed_by: tuple[str, ...] = ()
    """Methods under which a class does not cut a row that it cuts otherwise: "awq", "gptq"."""
    scheme: Scheme | None = None
    """How a quantised checkpoint stores the row; families leave it out, `quantisation.quantised` sets it."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Every dimension that a cut has to come out even in."""
        return (*self.outs, self.contraction, self.experts)


class CacheRow(NamedTuple):
    """What one token costs in the attention cache of each of `layers`.

    `heads` are the heads that keep keys and values, `elements_per_head` the widths of a key and a value together.
    `window` is the number of tokens that a sliding or chunked layer keeps, None for a full one.
    """

    layers: Sequence[int]
    heads: Extent
    elements_per_head: int
    kind: CacheKind = "full"
    window: int | None = None
    element: CacheElement = "cache"
    tokens: int = 1
    """Tokens that share the elements, where a page is padded as a whole."""
    with_towers: bool = False
    """Kept only where the towers of a multimodal model are built."""


StateElement = Literal["model", "float32"]
"""The type of a state's elements: the model's own, or 32 bits whatever that is."""


class StatePart(NamedTuple):
    """One tensor of a recurrent state: `times` vectors of these extents, which ranks cut as they cut weights."""

    extents: tuple[Extent, ...]
    times: int = 1
    element: StateElement = "model"


class StateRow(NamedTuple):
    """What one sequence costs in each of `layers` that keep a recurrent state, however long it is.

    The engine makes the cache's pages as large as a state, in whole multiples of `page_multiple` tokens.
    """

    layers: Sequence[int]
    parts: tuple[StatePart, ...]
    page_multiple: int = 16


class Unlike(NamedTuple):
    """Parameters that the engine builds and the checkpoint does not have (above 0), or the other way (below 0)."""

    parameters: int
    why: str


class Demand(NamedTuple):
    """What the class wants of a layout: one pipeline stage, or the cache of each sequence on one rank."""

    kind: Literal["single_stage", "no_decode_context_parallel"]
    why: str
    with_sequence_parallel: bool = False
    """Only where MoE layers are sequence-parallel."""


class Rows(NamedTuple):
    """All rows of one model. `layers` is the number of decoder layers that pipeline stages are made of.

    `bytes_unknown` is set where the sizes of the rows are right and what an element takes is not known
    (a quantised checkpoint).  `renames` are the beginnings of module names that the repository writes otherwise than
    the engine: (repository's, engine's), for the lists of modules that a checkpoint leaves unquantised.
    """

    weights: tuple[Row, ...]
    caches: tuple[CacheRow, ...]
    layers: int
    bytes_unknown: Unknown | None = None
    renames: tuple[tuple[str, str], ...] = ()
    fp8_cache_on: int | None = None
    """The major CUDA compute capability of the cards on which the class takes an FP8 cache where nobody asks."""
    reads_quantisation_as: tuple[tuple[str, str], ...] = ()
    """Where a class makes something of its own of a method of quantisation: (stated, what it stands for)."""
    states: tuple[StateRow, ...] = ()
    first_stage_layers: int = 0
    """Layers that the first of several pipeline stages has to hold, because what the tower hands them stays there."""
    demands: tuple[Demand, ...] = ()
    ties_on_one_stage: bool = False
    """Whether the class joins head and embedding on every stage, and fails on those that build no head."""
    unlike_checkpoint: tuple[Unlike, ...] = ()
    """Where the rows are more or less than what the checkpoint holds, beside towers and tied heads."""
