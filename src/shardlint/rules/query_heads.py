"""Query heads that do not divide by the tensor parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.rules._words import named, tensor_advice


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    num_attention_heads: Located[int],
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    heads, tp = num_attention_heads.value, tensor_parallel_size.value
    if heads % tp == 0:
        return
    yield Problem(
        at=tensor_parallel_size,
        message=f"{heads} attention heads do not divide by the tensor parallel size {tp}: "
        f"{named(engine, engine_version)} refuses to start",
        sum=f"{heads} heads % {tp} = {heads % tp}",
        help=tensor_advice(legal, tensor_parallel_size),
        related=((num_attention_heads, f"{heads} attention heads"),),
    )


RULE = Rule("SL101", "query-heads", "tp-heads", "error", "refuses-at-start", judge, applies)
