"""A type of numbers that the model or the card does not go with."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator, Geometry
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._cards import capability_of
from shardlint.rules._conditions import Condition, judged

OVERFLOW_IN_HALVES = ("gemma2", "gemma3", "gemma3_text", "glm4")
"""Model types whose activations do not fit into float16."""

HALF = ("half", "float16")
LEAST_FOR_BFLOAT16 = 80

CONDITIONS = (
    Condition(
        ("dtype",),
        lambda t: t.dtype in HALF and t.model_type in OVERFLOW_IN_HALVES,
        lambda t: f"a {t.model_type} model is numerically unstable in float16",
        help=lambda t: ("--dtype bfloat16",),
        since="0.10.2",
    ),
    Condition(
        ("dtype",),
        lambda t: t.dtype == "bfloat16" and t.capability is not None and t.capability < LEAST_FOR_BFLOAT16,
        lambda t: f"bfloat16 needs compute capability 8.0, and {t.card} has {t.capability / 10}",
        sum=lambda t: f"{t.capability / 10} < 8.0",
        help=lambda t: ("--dtype half",),
        effect="fails-while-loading",
    ),
)


def judge(
    told: Told,
    dtype: Located[str],
    geometry: Geometry,
    engine: Engine,
    engine_version: Located[Version],
    accelerators: Located[tuple[Accelerator, ...]] | None = None,
) -> Iterator[Problem | Undecided]:
    if dtype.origin != "written":
        return
    card = accelerators.value[0].name if accelerators is not None and accelerators.value else ""
    known = told.also(
        model_type=Located(geometry.model_type), capability=Located(capability_of(accelerators)), card=Located(card)
    )
    yield from judged(CONDITIONS, known, engine, engine_version)


RULE = Rule("SL908", "unsupported-dtype", "model-support", "error", "refuses-at-start", judge)
