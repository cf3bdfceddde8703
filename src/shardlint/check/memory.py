"""From the facts of a deployment to the memory of its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardlint.check.layouts import CACHE_FIELDS, LARGEST_BLOCK, MOST_RANKS_SHARED
from shardlint.check.sharing import Same
from shardlint.findings import Located, Maybe, Unknown
from shardlint.layout import Layout
from shardlint.layout.memory import MOST_BYTES, MOST_TOKENS, Memory, Options, memory

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts

OTHER_LENGTHS = ("hf-overrides", "rope-scaling")
"""Flags that may give the model another length than its config."""
ASKED = ("gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs", "quantization")
FIELDS = ("kv-cache-memory-bytes", "num-gpu-blocks-override", "block-size", "cpu-offload-gb", "enforce-eager")
"""Other flags that the sum is made with; one that is not known leaves it unknown, as do those of the states' types."""
MOST_GIB = 2**20


def context_length_of(facts: DeploymentFacts) -> Maybe[int] | None:
    """Tokens that a request may have: as written, else the model's own; None where the engine fits it to the memory.

    Scaled positions may make the model's own length larger, never smaller.
    """
    written = facts.knob("max_model_len")
    if isinstance(written, Unknown):
        return written
    if written is not None:
        return written if isinstance(written.value, int) and 0 < written.value <= MOST_TOKENS else None
    if any(name.startswith(OTHER_LENGTHS) for name in facts.deployment.engine_fields):
        return Unknown("the options of the model may change its length", settle_by="--max-model-len")
    length: Maybe[int] = facts.answer("max_position_embeddings")
    if isinstance(length, Located) and not (isinstance(length.value, int) and 0 < length.value <= MOST_TOKENS):
        return Unknown("the length of the model is not known", settle_by="--max-model-len")
    return length


def memory_of(facts: DeploymentFacts, layout: Layout | Unknown | None = None) -> Maybe[Memory]:
    """The memory of every GPU under a layout, the deployment's own unless another is given.

    Where the engine fits the length to the memory, a single token is asked of it.
    """
    layout, cards, length = layout or facts.layout, facts.accelerators, facts.context_length
    if isinstance(length, Unknown):
        return length
    options = _options(facts, 1 if length is None else length.value)
    if isinstance(layout, Unknown):
        return layout
    if isinstance(cards, Unknown):
        return cards
    if isinstance(options, Unknown):
        return options

    def worked_out() -> Memory | Unknown:
        return memory(layout, facts.geometry, cards.value, options)

    shared = layout.sizes.world_size <= MOST_RANKS_SHARED  # a larger layout is no other deployment's
    found = facts.once(worked_out, Same(layout), cards.value, options) if shared else worked_out()
    return found if isinstance(found, Unknown) else Located(found, origin="derived", source="measured start-ups")


def _options(facts: DeploymentFacts, max_model_len: int) -> Options | Unknown:
    asked: dict[str, Any] = {}
    for name in ASKED:
        value = facts.knob(name)
        if isinstance(value, Unknown):
            return value
        asked[name] = None if value is None else value.value
    share = asked["gpu_memory_utilization"]
    if share is None or not 0 < share <= 1:
        return Unknown(f"gpu_memory_utilization is {share}")
    fields = {name: facts.deployment.engine_fields.get(name) for name in (*FIELDS, *CACHE_FIELDS)}
    unknown = next((value for value in fields.values() if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    written = {name: value.value for name, value in fields.items() if isinstance(value, Located)}
    return Options(
        facts.engine_version.value,
        max_model_len=max_model_len,
        enforce_eager=written.get("enforce-eager", False) is not False,
        kv_cache_memory_bytes=_positive(written.get("kv-cache-memory-bytes"), MOST_BYTES),
        num_gpu_blocks_override=_positive(written.get("num-gpu-blocks-override"), MOST_TOKENS),
        block_size=_positive(written.get("block-size"), LARGEST_BLOCK),
        cpu_offload_gb=_positive(written.get("cpu-offload-gb"), MOST_GIB) or 0,
        **asked,
    )


def _positive(value: Any, most: int) -> Any:
    """A number that can be meant; what is none is another rule's finding."""
    return value if isinstance(value, (int, float)) and 0 < value <= most else None
