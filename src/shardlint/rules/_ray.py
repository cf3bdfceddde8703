"""When vLLM turns to Ray although nobody told it to."""

from __future__ import annotations

from shardlint.engines.versions import Version
from shardlint.layout.placement import Placement

TOOK_RAY_UNTIL = Version.of("0.11.0")
"""0.11.0 still turns to Ray by itself where a node has too few GPUs, 0.11.2 refuses."""


def on_default_executor(placement: Placement) -> bool:
    """Whether the engine looks at its own node alone, because nobody chose otherwise."""
    return not placement.chosen and placement.executor == "mp" and placement.nnodes == 1


def needs_ray(placement: Placement, gpus: int, version: Version) -> bool:
    """Whether a replica does not fit its node, nobody chose an executor, and the engine does not turn to Ray itself."""
    return on_default_executor(placement) and placement.replica_size > gpus and version > TOOK_RAY_UNTIL
