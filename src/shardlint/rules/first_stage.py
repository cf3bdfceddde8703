"""A tower that hands images to more layers than the first pipeline stage holds."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import named, respelled


def applies(pipeline_parallel_size: Located[int]) -> bool:
    return pipeline_parallel_size.value > 1


def judge(
    layout: Layout, pipeline_parallel_size: Located[int], engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem]:
    unmet = next((unmet for unmet in layout.unmet if unmet.kind == "first_stage"), None)
    if unmet is None:
        return
    layers, held = sum(stage.number for stage in layout.stages), layout.stages[0].number
    most = max(layers // unmet.least, 1)
    yield Problem(
        at=pipeline_parallel_size,
        message=f"the tower hands images to the first {unmet.least} layers, and the first of "
        f"{pipeline_parallel_size.value} stages holds {held}: {named(engine, engine_version)} fails while it builds "
        "the second",
        sum=f"{held} layers < {unmet.least} layers that images go to",
        help=(respelled(pipeline_parallel_size, most, "pipeline_parallel_size"),),
    )


RULE = Rule("SL204", "first-stage", "pp-partition", "error", "fails-while-loading", judge, applies)
