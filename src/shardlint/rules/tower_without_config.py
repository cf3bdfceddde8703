"""A class with a vision tower whose config does not describe one."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.architectures import lacks_vision_config
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.facts import Geometry
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named

TOWER = "ForConditionalGeneration"


def judge(
    geometry: Geometry, architecture: Located[str], engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem]:
    if not lacks_vision_config(geometry):
        return
    text_only = architecture.value.replace(TOWER, "ForCausalLM")
    known = engine.knows(text_only, str(engine_version.value)) is True
    override = f"""--hf-overrides '{{"architectures": ["{text_only}"]}}'"""
    yield Problem(
        at=architecture,
        message=f"{architecture.value} builds a vision tower, and config.json, of model type {geometry.model_type}, "
        f"has no vision_config: {named(engine, engine_version)} fails while it builds the model",
        help=(override,) if known else (),
    )


RULE = Rule("SL904", "tower-without-config", "model-support", "error", "fails-while-loading", judge)
