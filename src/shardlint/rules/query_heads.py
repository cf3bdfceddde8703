"""Query heads that do not divide by the tensor parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.rules._attention import attention_ranks, in_words
from shardlint.rules._conditions import OUTCOMES
from shardlint.rules._words import named, tensor_advice


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    num_attention_heads: Located[int],
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    told: Told,
    legal: Legal | None = None,
) -> Iterator[Problem]:
    heads, tp = num_attention_heads.value, attention_ranks(told, engine, tensor_parallel_size)
    if heads % tp == 0:
        return
    effect = engine.cutting(engine_version.value)["query_head"].refuses or "refuses-at-start"
    yield Problem(
        at=tensor_parallel_size,
        message=f"{heads} attention heads do not divide by {in_words(tp, tensor_parallel_size)}: "
        f"{named(engine, engine_version)} {OUTCOMES[effect]}",
        sum=f"{heads} heads % {tp} = {heads % tp}",
        help=tensor_advice(legal, tensor_parallel_size),
        related=((num_attention_heads, f"{heads} attention heads"),),
        effect=effect,
    )


RULE = Rule("SL101", "query-heads", "tp-heads", "error", "refuses-at-start", judge, applies, engines=("vllm", "sglang"))
