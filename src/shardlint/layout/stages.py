"""Which pipeline stage holds which layers."""

from __future__ import annotations

from typing import Literal

from shardlint.engines.cutting import StageRemainder
from shardlint.findings.records import NamedTuple


class Layers(NamedTuple):
    """A half-open range of decoder layers."""

    start: int
    stop: int

    @property
    def number(self) -> int:
        """How many layers there are; a negative part of a partition gives none."""
        return max(0, self.stop - self.start)


class PartitionFault(NamedTuple):
    """Why VLLM_PP_LAYER_PARTITION does not describe these stages."""

    kind: Literal["text", "count", "sum"]
    reason: str


def stage_layers(
    layers: int,
    pipeline_parallel_size: int,
    remainder: StageRemainder = "before_last",
    partition: str | None = None,
) -> tuple[Layers, ...] | PartitionFault:
    """The layers of every stage, as vLLM's get_pp_indices gives them.

    `partition` is the text of VLLM_PP_LAYER_PARTITION where it is set; the engine reads it at one stage too.
    A stage may be empty: the engine does not look whether there are more stages than layers.
    """
    if partition is None:
        return _ranges(even_counts(layers, pipeline_parallel_size, remainder))
    counts = _partition_counts(partition)
    if counts is None:
        return PartitionFault("text", f'"{_short(partition)}" is not a list of whole numbers such as "9,9,9,9"')
    if len(counts) != pipeline_parallel_size:
        return PartitionFault("count", f"{len(counts)} parts for {pipeline_parallel_size} pipeline stages")
    if sum(counts) != layers:
        return PartitionFault("sum", f"the parts add up to {sum(counts)} and the model has {layers} layers")
    return _ranges(counts)


def even_counts(layers: int, pipeline_parallel_size: int, remainder: StageRemainder = "before_last") -> list[int]:
    """Layers per stage where nobody says otherwise; `remainder` names the stages that hold more than the others."""
    base, more = divmod(layers, pipeline_parallel_size)
    counts = [base] * pipeline_parallel_size
    if remainder == "last":
        counts[-1] += more
    else:
        for stage in range(pipeline_parallel_size - 1 - more, pipeline_parallel_size - 1):
            counts[stage] += 1
    return counts


def _ranges(counts: list[int]) -> tuple[Layers, ...]:
    ranges, start = [], 0
    for count in counts:
        ranges.append(Layers(start, start + count))
        start += count
    return tuple(ranges)


def _partition_counts(partition: str) -> list[int] | None:
    try:
        return [int(part) for part in partition.split(",")]
    except ValueError:  # also what int() says to more digits than it will read
        return None


def _short(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
