"""A degree of parallelism below 1."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named


def judge(
    engine: Engine,
    engine_version: Located[Version],
    tensor_parallel_size: Located[int] | None = None,
    pipeline_parallel_size: Located[int] | None = None,
    data_parallel_size: Located[int] | None = None,
    prefill_context_parallel_size: Located[int] | None = None,
    decode_context_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    degrees = {
        "tensor": tensor_parallel_size,
        "pipeline": pipeline_parallel_size,
        "data": data_parallel_size,
        "prefill context": prefill_context_parallel_size,
        "decode context": decode_context_parallel_size,
    }
    for name, size in degrees.items():
        if size is not None and size.value < 1:
            yield Problem(
                at=size,
                message=f"the {name} parallel size is {size.value} and must be at least 1: "
                f"{named(engine, engine_version)} refuses to start",
                sum=f"{size.value} < 1",
            )


RULE = Rule("SL903", "impossible-size", "flags", "error", "refuses-at-start", judge)
