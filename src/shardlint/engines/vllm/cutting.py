"""vLLM's cutting table, by version."""

from __future__ import annotations

from functools import lru_cache

from shardlint.engines.cutting import UNKNOWN_KERNELS, Cut, Cutting, Kernels, Remainder
from shardlint.engines.versions import Version

VOCABULARY_PADDING = 64
BLOCKS_REFINE_TO = 32

STAGES_BEFORE_LAST_SINCE = Version.of("0.8")
"""0.7.3 leaves the remainder to the last stage, 0.8.0 does not."""
EXPERTS_TO_FIRST_RANKS_SINCE = Version.of("0.10.1")
"""0.10.0 leaves the remainder to the last rank, 0.10.1 does not."""
BLOCKS_REFINED_SINCE = Version.of("0.29")

KERNELS = (
    ((8, 0), Kernels(1, 128, 256, refines_blocks=False)),
    ((8, 9), Kernels(1, 128, 256, refines_blocks=True)),
    ((9, 0), Kernels(1, 64, 1, refines_blocks=True)),
    ((10, 0), Kernels(128, 128, 256, refines_blocks=True)),
    ((11, 0), UNKNOWN_KERNELS),
)
"""Recorded with 0.33.0 on A100, L4, H100 and B200: what the kernels that each of them prefers pad experts to."""


@lru_cache(maxsize=64)
def cutting(version: Version) -> Cutting:
    """What vLLM of this version does with each kind of piece."""
    experts: Remainder = "first_ranks" if version >= EXPERTS_TO_FIRST_RANKS_SINCE else "last_rank"
    return Cutting(
        pieces={
            "query_head": Cut(refuses="refuses-at-start"),
            "kv_head": Cut(refuses="fails-while-loading", replicates=True),
            "vision_head": Cut(refuses="fails-while-loading"),
            "state_head": Cut(refuses="fails-while-loading"),
            "state_group": Cut(refuses="fails-while-loading"),
            "column": Cut(refuses="fails-while-loading"),
            "row": Cut(refuses="fails-while-loading"),
            "vocabulary": Cut(refuses="fails-while-loading", pads_to=VOCABULARY_PADDING),
            "expert": Cut(remainder=experts),
            "expert_width": Cut(refuses="fails-while-loading"),
            "quantisation_block": Cut(refuses="fails-while-loading"),
            "whole": Cut(replicates=True),
        },
        stage_remainder="before_last" if version >= STAGES_BEFORE_LAST_SINCE else "last",
        expert_blocks_refine_to=BLOCKS_REFINE_TO if version >= BLOCKS_REFINED_SINCE else 0,
        kernels=KERNELS,
    )
