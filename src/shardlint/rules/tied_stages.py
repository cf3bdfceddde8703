"""Pipeline stages of a class that joins head and embedding on stages which have no head."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._words import FLAGS, named, respelled


def applies(pipeline_parallel_size: Located[int]) -> bool:
    return pipeline_parallel_size.value > 1


def judge(
    layout: Layout,
    architecture: Located[str],
    pipeline_parallel_size: Located[int],
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    if all(unmet.kind != "one_stage" for unmet in layout.unmet):
        return
    whole = tensor_parallel_size.value * pipeline_parallel_size.value
    alone = respelled(pipeline_parallel_size, 1, "pipeline_parallel_size")
    wide = legal is not None and legal.fits("tensor_parallel_size", whole)
    respelt = respelled(tensor_parallel_size, whole, "tensor_parallel_size")
    yield Problem(
        at=pipeline_parallel_size,
        message=f"the embeddings of this model are tied, and {architecture.value} joins them on each of "
        f"{pipeline_parallel_size.value} stages, of which only the last has an output head: "
        f"{named(engine, engine_version)} fails while it builds the others",
        sum=f"PP {pipeline_parallel_size.value} > 1 with tied embeddings",
        help=(*((f"{respelt} {FLAGS['pipeline_parallel_size']} 1",) if wide else ()), alone),
        related=((architecture, f"the model class {architecture.value}"),),
    )


RULE = Rule("SL205", "tied-stages", "pp-unsupported", "error", "fails-while-loading", judge, applies)
