"""Decode context parallelism with an attention backend that cannot join the parts of its ranks."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import named

WITHOUT = frozenset({"TRITON_ATTN", "FLEX_ATTENTION", "ROCM_ATTN", "CPU_ATTN", "B12X"})
"""Backends of 0.33.0 whose class has no `supports_dcp`."""
VARIABLE_BEFORE = Version.of("0.15")
"""Before this release VLLM_ATTENTION_BACKEND names the backend as well."""


def applies(decode_context_parallel_size: Located[int]) -> bool:
    return decode_context_parallel_size.value > 1


def judge(
    decode_context_parallel_size: Located[int],
    told: Told,
    engine: Engine,
    engine_version: Located[Version],
    layout: Layout | None = None,
) -> Iterator[Problem]:
    unmet = layout.unmet if layout is not None else ()
    why = next((demand.reason for demand in unmet if demand.kind == "no_decode_context_parallel"), None)
    if why is not None:
        yield _of_the_class(decode_context_parallel_size, why, named(engine, engine_version))
        return
    backend = told.located("attention_backend")
    name = backend.value if backend is not None else told.part("attention_config", "backend")
    if name is None and engine_version.value < VARIABLE_BEFORE:
        name = told.variable("VLLM_ATTENTION_BACKEND")
    if not isinstance(name, str) or name.upper() not in WITHOUT:
        return
    size = decode_context_parallel_size.value
    yield Problem(
        at=backend if backend is not None else decode_context_parallel_size,
        message=f"{size} ranks of decode context parallelism hold parts of a sequence's cache, and {name.upper()} does "
        f"not return what is needed to join their results: {named(engine, engine_version)} finds no valid backend",
        sum=f"DCP {size} > 1",
        help=("leave --attention-backend out", "--decode-context-parallel-size 1"),
        related=((decode_context_parallel_size, f"DCP {size}"),),
    )


def _of_the_class(size: Located[int], why: str, engine: str) -> Problem:
    return Problem(
        at=size,
        message=f"{size.value} ranks of decode context parallelism hold parts of a sequence's cache, and the class of "
        f"this model has none of it ({why}): {engine} fails while it builds the attention",
        sum=f"DCP {size.value} > 1",
        help=("--decode-context-parallel-size 1",),
    )


RULE = Rule("SL502", "backend-without-dcp", "dcp", "error", "fails-while-loading", judge, applies)
