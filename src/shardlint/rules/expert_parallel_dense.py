"""Expert parallelism of a model that has no experts."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named


def applies(enable_expert_parallel: Located[bool]) -> bool:
    return bool(enable_expert_parallel.value)


def judge(
    num_experts: Located[int],
    enable_expert_parallel: Located[bool],
    engine: Engine,
    engine_version: Located[Version],
) -> Iterator[Problem]:
    if num_experts.value > 0:
        return
    yield Problem(
        at=enable_expert_parallel,
        message=f"expert parallelism is on and the model has {num_experts.value} experts: "
        f"{named(engine, engine_version)} refuses to start",
        sum=f"{num_experts.value} experts; at least 1 is needed",
        help=("leave --enable-expert-parallel out: this model is dense",),
        related=((num_experts, "a dense model"),),
    )


RULE = Rule("SL401", "expert-parallel-dense", "ep-moe", "error", "refuses-at-start", judge, applies)
