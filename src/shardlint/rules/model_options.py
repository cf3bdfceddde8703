"""Options on what to do with a model that its class does not go with, or that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm.architectures import can, has_config_class
from shardlint.facts import Geometry
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged

OFF = (None, "auto")
ANY_BLANKS = ("xgrammar", "guidance")


def _class_can(told: Told, what: Any) -> bool | None:
    """What is recorded of the model's class; None where something else may be loaded in its place."""
    if told.hf_overrides or told.model_impl not in OFF or told.model_class_overrides:
        return None
    return can(told.architecture, what)


def _backend(told: Told) -> Any:
    return told.part("structured_outputs_config", "backend") or "auto"


def _sizes(told: Told) -> list[int]:
    """The batch sizes of CUDA graphs as written."""
    written = told.cudagraph_capture_sizes or ()
    return [int(size) for size in written if str(size).isdecimal()]


def _most(told: Told) -> int | None:
    most: int | None = told.max_cudagraph_capture_size
    return most


CONDITIONS = (
    Condition(
        ("trust_remote_code", "model"),
        lambda t: t.has_own_config and not t.trust_remote_code and t.config_format in (None, "auto", "hf"),
        lambda t: (
            f"config.json is of type {t.model_type}, which the engine does not know, and its class is code in the "
            "model's repository"
        ),
        help=lambda t: ("--trust-remote-code, where that code is trusted",),
        since="0.33.0",
    ),
    Condition(
        ("runner",),
        lambda t: t.runner == "generate" and _class_can(t, "text") is False,
        lambda t: f"{t.architecture} generates no text, and --runner generate asks for it",
        help=lambda t: ("--runner pooling",),
        since="0.33.0",
    ),
    Condition(
        ("convert", "runner"),
        lambda t: t.runner == "pooling" and t.convert == "none" and _class_can(t, "pooling") is False,
        lambda t: f"{t.architecture} does not pool, and --convert none keeps it from being made to",
        help=lambda t: ("--convert embed", "--convert classify"),
        since="0.33.0",
    ),
    Condition(
        ("attention_backend", "attention_config"),
        lambda t: t.attention_backend is not None and t.part("attention_config", "backend") is not None,
        lambda t: "the backend of attention stands in --attention-backend and in --attention-config",
        help=lambda t: ("say it once",),
        since="0.33.0",
    ),
    Condition(
        ("structured_outputs_config",),
        lambda t: (
            t.part("structured_outputs_config", "disable_any_whitespace") is True and _backend(t) not in ANY_BLANKS
        ),
        lambda t: f"disable_any_whitespace is for xgrammar and guidance, and the backend is {_backend(t)}",
        help=lambda t: ('"backend": "xgrammar"',),
        since="0.33.0",
    ),
    Condition(
        ("structured_outputs_config",),
        lambda t: (
            t.part("structured_outputs_config", "disable_additional_properties") is True and _backend(t) != "guidance"
        ),
        lambda t: f"disable_additional_properties is for guidance, and the backend is {_backend(t)}",
        help=lambda t: ('"backend": "guidance"',),
        since="0.33.0",
    ),
    Condition(
        ("max_cudagraph_capture_size", "cudagraph_capture_sizes"),
        lambda t: not t.enforce_eager and bool(_sizes(t)) and _most(t) is not None and _most(t) != max(_sizes(t)),
        lambda t: f"the largest of the sizes to capture is {max(_sizes(t))}, and the most is said to be {_most(t)}",
        sum=lambda t: f"{max(_sizes(t))} != {_most(t)}",
        help=lambda t: ("leave --max-cudagraph-capture-size out",),
        since="0.33.0",
    ),
    Condition(
        ("collect_detailed_traces", "otlp_traces_endpoint"),
        lambda t: bool(t.collect_detailed_traces) and t.otlp_traces_endpoint is None,
        lambda t: "--collect-detailed-traces needs a place to send them to",
        help=lambda t: ("--otlp-traces-endpoint URL",),
        since="0.33.0",
    ),
    Condition(
        ("optimization_level",),
        lambda t: str(t.optimization_level).isdecimal() and int(t.optimization_level) > 3,
        lambda t: f"levels of optimisation go from 0 to 3, and {t.optimization_level} is asked for",
        help=lambda t: ("-O3",),
        since="0.33.0",
    ),
)


def _has_own_config(geometry: Geometry) -> bool:
    mapped = geometry.raw.get("auto_map")
    is_mapped = isinstance(mapped, dict) and "AutoConfig" in mapped
    return geometry.has_files and is_mapped and bool(geometry.model_type) and not has_config_class(geometry.model_type)


def judge(
    told: Told, geometry: Geometry, engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem | Undecided]:
    known = told.also(
        model_type=Located(geometry.model_type),
        has_own_config=Located(_has_own_config(geometry) and told.hf_overrides is None),
    )
    yield from judged(CONDITIONS, known, engine, engine_version)


RULE = Rule("SL912", "model-options", "model-support", "error", "refuses-at-start", judge)
