"""The layout of one engine instance, rank by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Layers(NamedTuple):
    """A half-open range of decoder layers."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rank:
    """One worker process and what it holds (the contract's fields)."""

    rank: int
    data_parallel_rank: int
    pipeline_parallel_rank: int
    prefill_context_parallel_rank: int
    tensor_parallel_rank: int
    node: int | None
    layers: Layers | None
    weight_bytes: int | None
    kv_bytes_per_token_if_all_full: int | None

    def kv_bytes(self, tokens: int) -> int | None:
        """What one sequence of `tokens` tokens takes on this rank, in bytes; None where the rows are unknown."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Layout:
    """All ranks, in the engine's order DP x PP x PCP x TP."""

    ranks: tuple[Rank, ...]
    unknown: str | None = None
    """Why bytes are None, and what would settle it."""
    refused: str | None = None
    """Why the engine refuses this layout, where it does."""
