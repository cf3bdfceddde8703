"""Pipeline parallelism with a model class that has none."""

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
    supports_pp: Located[bool],
    architecture: Located[str],
    pipeline_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    tensor_parallel_size: Located[int],
    legal: Legal | None = None,
    layout: Layout | None = None,
) -> Iterator[Problem]:
    unmet = layout.unmet if layout is not None else ()
    why = next((demand.reason for demand in unmet if demand.kind == "single_stage"), None)
    if supports_pp.value and why is None:
        return
    size = pipeline_parallel_size.value
    missing = "no pipeline parallelism" if why is None else f"no pipeline parallelism for this model ({why})"
    yield Problem(
        at=pipeline_parallel_size,
        message=f"{architecture.value} has {missing}, so {named(engine, engine_version)} refuses to start with a "
        f"pipeline parallel size of {size}",
        sum=f"PP {size} > 1" if why else f"PP {size} > 1 and {architecture.value} is not SupportsPP",
        help=tuple(_advice(pipeline_parallel_size, tensor_parallel_size, architecture, engine, engine_version, legal)),
        related=((architecture, f"the model class {architecture.value}"),),
    )


def _advice(
    pp: Located[int],
    tp: Located[int],
    architecture: Located[str],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None,
) -> Iterator[str]:
    whole = tp.value * pp.value
    if legal is not None and legal.fits("tensor_parallel_size", whole):
        alone = respelled(tp, whole, "tensor_parallel_size")
        yield f"{alone} {FLAGS['pipeline_parallel_size']} 1"
    if str(engine_version.value) != engine.newest and engine.supports_pp(architecture.value, engine.newest) is True:
        yield f"{engine.label} {engine.newest}, whose {architecture.value} has pipeline parallelism"
    yield respelled(pp, 1, "pipeline_parallel_size")


RULE = Rule("SL201", "pipeline-support", "pp-unsupported", "error", "refuses-at-start", judge, applies)
