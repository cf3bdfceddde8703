"""A model class that neither the engine nor its fallback has."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm.architectures import in_transformers
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._conditions import released
from shardlint.rules._words import named

SINCE = "0.33.0"
"""The oldest release of which is known what its Transformers have."""

GENERATING = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ChatModel")
"""Endings of classes that generate; others may be served as a class that a known one is turned into."""

ENDINGS = (
    *GENERATING,
    *("ForTextEncoding", "EmbeddingModel", "ForSequenceClassification", "ForTokenClassification"),
    *("ForAudioClassification", "ForImageClassification", "ForVideoClassification", "ClassificationModel"),
    *("ForRewardModeling", "RewardModel", "Model"),
)


def applies(architecture: Located[str], engine: Engine, engine_version: Located[Version]) -> bool:
    name, release = architecture.value, engine_version.value
    if not name.endswith(GENERATING) or release < released(SINCE) or in_transformers(name):
        return False
    return all(engine.knows(kin, release) is False for kin in _kin(name))


def judge(
    architecture: Located[str],
    engine: Engine,
    engine_version: Located[Version],
    has_own_code: Located[bool],
    told: Told,
) -> Iterator[Problem]:
    if has_own_code.value or told.hf_overrides or told.model_impl not in (None, "auto", "vllm"):
        return
    yield Problem(
        at=None,
        message=f"{named(engine, engine_version)} has no model class {architecture.value}, and neither have the "
        "Transformers that it falls back on: it refuses to start",
        help=("a checkpoint that was converted for Transformers", "a package that registers the class with the engine"),
    )


def _kin(name: str) -> Iterator[str]:
    """The class itself and those that differ in the ending, one of which the engine may turn into it."""
    ending = next(ending for ending in ENDINGS if name.endswith(ending))
    yield from dict.fromkeys((name, *(name.replace(ending, other) for other in ENDINGS)))


RULE = Rule("SL906", "unknown-architecture", "model-support", "error", "refuses-at-start", judge, applies)
