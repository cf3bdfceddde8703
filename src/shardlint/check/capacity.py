"""What the GPUs of a deployment keep for its KV cache, and what that holds: a fact for people, no finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardlint.findings import Located, Unknown
from shardlint.layout import Layout
from shardlint.layout.memory import Memory
from shardlint.layout.overheads import Estimate

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts

NOTHING_KNOWN: dict[str, Any] = {
    "gpu": None,
    "max_model_len": None,
    "weight_bytes": None,
    "kv_cache_bytes": None,
    "kv_cache_tokens": None,
    "concurrent_requests": None,
    "data_parallel_replicas": None,
    "certainty": None,
    "reason": None,
    "settle_by": None,
}
ENGINE = "vllm"
"""The engine whose start-ups were measured."""


def capacity_of(facts: DeploymentFacts) -> dict[str, Any] | None:
    """The fields of `memory` in `inspect --format json`; None for engines whose memory is not worked out.

    Bytes are those of the GPU with the least to spare; tokens and requests are those of one data parallel replica, of
    which each has a cache of its own.
    """
    if facts.engine.name != ENGINE:
        return None
    layout, memory, cards = facts.layout, facts.memory, facts.accelerators
    if isinstance(layout, Layout) and layout.refused:
        memory = Unknown(f"the engine refuses this layout: {layout.refused}")
    if isinstance(memory, Unknown):
        return {**NOTHING_KNOWN, "reason": memory.reason, "settle_by": memory.settle_by or None}
    length = facts.context_length
    known = {
        "gpu": cards.value[0].name if isinstance(cards, Located) else None,
        "data_parallel_replicas": layout.sizes.data_parallel_size if isinstance(layout, Layout) else None,
    }
    return {**NOTHING_KNOWN, **known, **_held(memory.value, length.value if isinstance(length, Located) else None)}


def _held(memory: Memory, length: int | None) -> dict[str, Any]:
    """What a replica holds of requests of that length, of None where the engine chooses the length by its memory."""
    tightest, sequences = memory.tightest(), memory.sequences()
    exact = tightest.stated_kv is not None
    held: dict[str, Any] = {
        "max_model_len": length,
        "weight_bytes": _range(tightest.weights),
        "kv_cache_bytes": _range(tightest.kv),
        "certainty": "exact" if exact else "estimate",
    }
    if sequences is None:
        return {**held, "reason": "the model keeps no cache"}
    if length is None:
        return {**held, "kv_cache_tokens": _range(memory.longest())}
    tokens, requests = sequences.scaled(length), sequences.whole()
    return {**held, "kv_cache_tokens": _range(tokens), "concurrent_requests": _range(requests)}


def _range(estimate: Estimate) -> dict[str, float]:
    return _named(*(int(max(value, 0)) for value in estimate))


def _named(low: float, likely: float, high: float) -> dict[str, float]:
    return {"low": low, "likely": likely, "high": high}
