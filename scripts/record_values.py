"""Ask an installed vLLM which words its options take, which keys those have that take JSON, and what its classes can.

Usage: python scripts/record_values.py > scripts/vllm_values.json, with an interpreter that has vLLM, on a machine where
vLLM finds the CUDA platform; then run scripts/build_engine_tables.py.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from vllm import config, version
from vllm.config.compilation import PassConfig
from vllm.entrypoints.common.cli_args import make_arg_parser
from vllm.model_executor.models.registry import ModelRegistry, _ModelInfo
from vllm.transformers_utils.config import _CONFIG_REGISTRY
from vllm.utils.argparse_utils import FlexibleArgumentParser

OBJECTS = {
    "--attention-config": config.AttentionConfig,
    "--compilation-config": config.CompilationConfig,
    "--compilation-config.pass_config": PassConfig,
    "--eplb-config": config.EPLBConfig,
    "--ec-transfer-config": config.ECTransferConfig,
    "--kernel-config": config.KernelConfig,
    "--kv-events-config": config.KVEventsConfig,
    "--kv-transfer-config": config.KVTransferConfig,
    "--pooler-config": config.PoolerConfig,
    "--profiler-config": config.ProfilerConfig,
    "--speculative-config": config.SpeculativeConfig,
    "--structured-outputs-config": config.StructuredOutputsConfig,
}


def words(hint: Any) -> list[Any]:
    """The literals that a type hint allows, [] where it allows anything else too."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return list(parts)
    if origin is typing.Annotated:
        return words(parts[0])
    if parts and (origin is typing.Union or "Union" in str(origin)):
        found = [words(part) for part in parts if part is not type(None)]
        return [word for part in found for word in part] if all(found) else []
    return []


def keys(kind: Any) -> dict[str, list[Any]]:
    """The keys that a config class takes, each with its closed list of words where it has one."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: words(hints[field.name]) for field in dataclasses.fields(kind) if field.init}


def abilities(name: str) -> list[str]:
    """What a model class can: take adapters, generate text, pool."""
    try:
        known = _ModelInfo.from_model_cls(ModelRegistry.models[name].load_model_cls())
    except ImportError:  # it is in a package of its own
        return ["unknown"]
    asked = {"lora": known.supports_lora, "text": known.is_text_generation_model, "pooling": known.is_pooling_model}
    return [what for what, can in asked.items() if can]


def main() -> None:
    parser = make_arg_parser(FlexibleArgumentParser())
    choices = {
        max(action.option_strings, key=len): [word for word in action.choices if word is not None]
        for action in parser._actions
        if action.choices and action.option_strings
    }
    objects = {name: keys(kind) for name, kind in OBJECTS.items()}
    found = {"version": version.__version__, "choices": choices, "keys": objects}
    found["classes"] = {name: " ".join(abilities(name)) for name in sorted(ModelRegistry.get_supported_archs())}
    found["model_types"] = sorted({*CONFIG_MAPPING_NAMES, *_CONFIG_REGISTRY})
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
