"""A context length that the model was not made for."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._conditions import released
from shardlint.rules._words import named, respelled

ALLOWED_BY = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
YARN_IS_IN_THE_LENGTH_SINCE = "0.33.0"
"""The oldest release that is known not to multiply a length by the factor of YaRN."""

ON = ("1", "true")

OTHER_LENGTHS = ("hf_overrides", "rope_scaling", "rope_theta", "config_format", "hf_config_path")
"""Flags that may give the model another length than its config.json."""


def applies(max_model_len: Located[int | None]) -> bool:
    return max_model_len.value is not None and max_model_len.value > 0


def judge(
    longest_context: Located[float],
    yarn_context: Located[float | None],
    max_model_len: Located[int],
    told: Told,
    engine: Engine,
    engine_version: Located[Version],
) -> Iterator[Problem]:
    longest = int(longest_context.value)
    if engine_version.value < released(YARN_IS_IN_THE_LENGTH_SINCE):
        longest = max(longest, int(yarn_context.value or 0))
    if max_model_len.value <= longest or any(getattr(told, name) for name in OTHER_LENGTHS):
        return
    if told.variable(ALLOWED_BY).lower() in ON:
        return
    yield Problem(
        at=max_model_len,
        message=f"requests of {max_model_len.value} tokens are asked for, and the model is made for {longest}: "
        f"{named(engine, engine_version)} refuses to start",
        sum=f"{max_model_len.value} > {longest} ({longest_context.spelled or 'the length of the model'})",
        help=(
            respelled(max_model_len, longest, "max_model_len"),
            f"{ALLOWED_BY}=1 only for a model that reads further than its config says",
        ),
        related=((longest_context, f"{longest} tokens"),),
    )


RULE = Rule("SL905", "length-beyond-model", "model-length", "error", "refuses-at-start", judge, applies)
