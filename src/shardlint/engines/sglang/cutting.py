"""SGLang's cutting table: what its layers assert while they are built, the same in all releases that were looked at."""

from __future__ import annotations

from functools import lru_cache

from shardlint.engines.cutting import Cut, Cutting
from shardlint.engines.versions import Version

VOCABULARY_PADDING = 64
REFUSED = Cut(refuses="fails-while-loading")


@lru_cache(maxsize=1)
def cutting(_version: Version) -> Cutting:
    """What SGLang does with each kind of piece. The blocks of experts are not refined as vLLM's newest releases do."""
    return Cutting(
        pieces={
            "query_head": Cut(refuses="refuses-at-start"),
            "kv_head": Cut(refuses="fails-while-loading", replicates=True),
            "vision_head": REFUSED,
            "state_head": REFUSED,
            "state_group": REFUSED,
            "column": REFUSED,
            "row": REFUSED,
            "vocabulary": Cut(refuses="fails-while-loading", pads_to=VOCABULARY_PADDING),
            "expert": REFUSED,
            "expert_width": REFUSED,
            "quantisation_block": REFUSED,
            "whole": Cut(replicates=True),
        }
    )
