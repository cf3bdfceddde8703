"""What a class of models demands of a layout beyond pieces that come out even."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from shardlint.architectures.rows import Row, Rows
from shardlint.findings.records import NamedTuple
from shardlint.layout.sizes import Sizes
from shardlint.layout.stages import Layers

DemandKind = Literal["first_stage", "one_stage", "balanced_experts", "single_stage", "no_decode_context_parallel"]


class Unmet(NamedTuple):
    """A demand that a layout does not meet."""

    kind: DemandKind
    reason: str
    least: int = 0
    """Of `first_stage`: the layers that the first stage has to hold."""
    row: Row | None = None
    """Of `balanced_experts`: the experts whose method takes no part in load balancing."""


def unmet_demands(rows: Rows, sizes: Sizes, stages: Sequence[Layers]) -> tuple[Unmet, ...]:
    """Everything that the class demands and the layout does not give."""
    found = (_first_stage(rows, stages), _one_stage(rows, sizes), _balanced_experts(rows, sizes))
    return (*(unmet for unmet in found if unmet is not None), *_stated(rows, sizes))


def _stated(rows: Rows, sizes: Sizes) -> Iterator[Unmet]:
    """Those that the family states as they are."""
    for demand in rows.demands:
        single = demand.kind == "single_stage"
        degree = sizes.pipeline_parallel_size if single else sizes.decode_context_parallel_size
        if degree > 1 and (sizes.sequence_parallel_experts or not demand.with_sequence_parallel):
            yield Unmet(demand.kind, demand.why)


def _first_stage(rows: Rows, stages: Sequence[Layers]) -> Unmet | None:
    least, held = rows.first_stage_layers, stages[0].number if len(stages) > 1 else 0
    if len(stages) < 2 or held >= least:
        return None
    return Unmet("first_stage", f"the first stage holds {held} layers, and the tower hands images to {least}", least)


def _one_stage(rows: Rows, sizes: Sizes) -> Unmet | None:
    if not rows.ties_on_one_stage or sizes.pipeline_parallel_size < 2:
        return None
    return Unmet("one_stage", "tied embeddings are joined on every stage, and only the last one has an output head")


def _balanced_experts(rows: Rows, sizes: Sizes) -> Unmet | None:
    if not (sizes.enable_eplb and sizes.enable_expert_parallel):
        return None
    row = next((row for row in rows.weights if row.scheme is not None and not row.scheme.balanced), None)
    if row is None or row.scheme is None:
        return None
    return Unmet("balanced_experts", f"experts in {row.scheme.name} take no part in load balancing", row=row)
