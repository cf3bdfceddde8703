"""The layout of one engine instance, rank by rank."""

from __future__ import annotations

import math

from shardlint.findings.records import NamedTuple
from shardlint.layout.demands import Unmet
from shardlint.layout.ranks import Group, GroupKind, crossing, groups
from shardlint.layout.share import Uneven
from shardlint.layout.sizes import Sizes
from shardlint.layout.stages import Layers, PartitionFault


class CacheShare(NamedTuple):
    """The caches of some equal layers on one rank."""

    layers: int
    bytes_per_token: float
    """Of one layer; a whole number but where tokens share a padded page."""
    window: int | None
    """Tokens that a layer keeps at most."""
    ranks_per_token: int
    """Ranks that share the tokens of a sequence (context parallelism)."""
    tokens_per_page: int = 1
    """Tokens that a layer takes room for at once."""

    def bytes(self, tokens: int) -> int:
        """What a sequence takes: a windowed layer stops at its window."""
        kept = tokens if self.window is None else min(tokens, self.window)
        pages = -(-kept // (self.ranks_per_token * self.tokens_per_page))
        return math.ceil(self.layers * self.bytes_per_token * pages * self.tokens_per_page)


class StateShare(NamedTuple):
    """The states of some equal layers on one rank."""

    layers: int
    bytes: int
    """Of one layer and one sequence, however long, with the padding to a page of the cache."""


class Rank(NamedTuple):
    """One worker process and what it holds (the contract's fields)."""

    rank: int
    data_parallel_rank: int
    pipeline_parallel_rank: int
    prefill_context_parallel_rank: int
    tensor_parallel_rank: int
    node: int | None
    layers: Layers | None
    weight_bytes: int | None
    kv_bytes_per_token_if_all_full: float | None
    caches: tuple[CacheShare, ...] | None = None
    states: tuple[StateShare, ...] = ()

    @property
    def state_bytes(self) -> int:
        """What the recurrent states of one sequence take on this rank."""
        return sum(state.layers * state.bytes for state in self.states)

    def kv_bytes(self, tokens: int) -> int | None:
        """What one sequence of `tokens` tokens takes on this rank, states included; None where the rows are unknown."""
        if self.caches is None:
            return None
        return self.state_bytes + sum(cache.bytes(tokens) for cache in self.caches)


class Layout(NamedTuple):
    """All ranks, in the engine's order DP x PP x PCP x TP."""

    ranks: tuple[Rank, ...]
    unknown: str | None = None
    """Why bytes are None, and what would settle it."""
    refused: str | None = None
    """Why the engine refuses this layout, where it does."""
    sizes: Sizes = Sizes()
    stages: tuple[Layers, ...] = ()
    """The layers of every pipeline stage; empty where the number of layers is unknown or the partition is at fault."""
    partition_fault: PartitionFault | None = None
    uneven: tuple[Uneven, ...] = ()
    """The pieces that do not come out even, each kind of piece and number once."""
    ranks_per_node: int | None = None
    makeshifts: tuple[Uneven, ...] = ()
    """Blocks of quantised weights that load though they do not come out even: by finer ones with slower kernels, or
    with scales that lose a part of a block without a word."""
    unmet: tuple[Unmet, ...] = ()
    """What the class of the model demands beyond that, and this layout does not give."""

    def groups(self, kind: GroupKind) -> tuple[Group, ...]:
        """The groups of one kind, as tuples of rank numbers."""
        return groups(kind, self.sizes) if self.ranks else ()

    def crossing(self, kind: GroupKind) -> tuple[Group, ...]:
        """The groups of one kind whose ranks sit on several nodes; empty where the nodes are unknown."""
        if not self.ranks or not self.ranks_per_node:
            return ()
        return crossing(kind, self.sizes, self.ranks_per_node)
