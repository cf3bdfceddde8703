"""Prefill context parallelism of a model whose attention has none."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named

SINCE = Version.of("0.33.0")
"""The oldest release of which it is known."""


def applies(prefill_context_parallel_size: Located[int], is_mla: Located[bool]) -> bool:
    return prefill_context_parallel_size.value > 1 and not is_mla.value


def judge(
    prefill_context_parallel_size: Located[int],
    num_attention_heads: Located[int],
    engine: Engine,
    engine_version: Located[Version],
) -> Iterator[Problem]:
    size = prefill_context_parallel_size.value
    if engine_version.value >= SINCE:
        yield Problem(
            at=prefill_context_parallel_size,
            message=f"{size} ranks of prefill context parallelism share a prompt, which only multi-head latent "
            f"attention (MLA) can, and this model has {num_attention_heads.value} ordinary heads: "
            f"{named(engine, engine_version)} finds no valid attention backend while it builds the model",
            sum=f"PCP {size} > 1",
            help=(f"--prefill-context-parallel-size 1, and the other factor {size} as TP, PP or DP",),
            related=((num_attention_heads, f"{num_attention_heads.value} heads"),),
        )


RULE = Rule("SL503", "prefill-context-parallel", "dcp", "error", "fails-while-loading", judge, applies)
