"""What layers with a recurrent state cost a sequence, and the pages of the cache that have to hold a state.

vLLM keeps states and keys in pages of one size (0.33.0: `platforms/interface.py`, `_align_hybrid_block_size`): a page
of a layer that attends takes more tokens until it is as large as a state, and a state is padded to that page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardlint.architectures.rows import StatePart, StateRow
from shardlint.findings.records import NamedTuple
from shardlint.layout.dtypes import ELEMENT_BYTES, TYPE_BYTES
from shardlint.layout.holdings import layers_between
from shardlint.layout.layout import CacheShare, StateShare
from shardlint.layout.share import Division
from shardlint.layout.stages import Layers


class StateTypes(NamedTuple):
    """What an element of a state takes: the engine's options, None where they are left to the model."""

    model_bytes: int | None
    cache: str | None = None
    """`mamba_cache_dtype`: of the inputs of the convolution, and of the recurrent part unless that has its own."""
    recurrent: str | None = None
    """`mamba_ssm_cache_dtype`."""

    def bytes(self, part: StatePart, place: int) -> int | None:
        """The recurrent part follows the convolution; a model that keeps it in 32 bits does so until told otherwise."""
        option = self.cache if part.element == "model" else None
        if place and self.recurrent not in (None, "auto"):
            option = self.recurrent
        if option is not None and option != "auto":
            return TYPE_BYTES.get(option)
        return self.model_bytes if part.element == "model" else ELEMENT_BYTES[part.element]


def with_states(
    caches: tuple[CacheShare, ...],
    states: Sequence[StateRow],
    division: Division,
    stage: Layers,
    types: StateTypes,
    block_size: int | None = None,
) -> tuple[tuple[CacheShare, ...], tuple[StateShare, ...]] | None:
    """The caches of a stage with pages as large as its states, and the states; None where their bytes are not known.

    A stage without layers that attend holds the bare states. `block_size` is the least size of a page in tokens.
    """
    held = [(row, layers) for row in states if (layers := layers_between(row.layers, stage))]
    sizes = [_state_bytes(row, division, types) for row, _ in held]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    if not held:
        return _paged(caches, block_size or 1), ()
    per_token = max((cache.bytes_per_token for cache in caches), default=0)
    if not per_token:
        return caches, tuple(StateShare(layers, size) for (_, layers), size in zip(held, known, strict=True))
    multiple = max(block_size or 1, *(row.page_multiple for row, _ in held))
    tokens = multiple * math.ceil(max(known) / (multiple * per_token))
    page = math.ceil(tokens * per_token)
    return (
        _paged(caches, tokens),
        tuple(StateShare(layers, page) for _, layers in held),
    )


def _paged(caches: tuple[CacheShare, ...], tokens: int) -> tuple[CacheShare, ...]:
    return tuple(cache._replace(tokens_per_page=tokens) for cache in caches)


def _state_bytes(row: StateRow, division: Division, types: StateTypes) -> int | None:
    """Of one layer and sequence on a rank; None where a dimension does not come out even."""
    parts = [_part_bytes(part, division, types.bytes(part, place)) for place, part in enumerate(row.parts)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _part_bytes(part: StatePart, division: Division, element: int | None) -> int | None:
    widths = [division.elements(extent) for extent in part.extents]
    known = [width for width in widths if width is not None]
    return None if element is None or len(known) < len(widths) else part.times * element * sum(known)
