"""What the engine makes of a checkpoint's quantisation, for the conditions of rules that ask about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.deployment import NotTold, Told
from shardlint.engines.versions import Version
from shardlint.engines.vllm.quantisation import FILES, Quantised, quantised
from shardlint.facts import Geometry
from shardlint.findings import Located, Unknown

CONFIG_KEYS = ("quantization_config", "compression_config")
MODELOPT_FILE = "hf_quant_config.json"


def described(geometry: Geometry) -> Mapping[str, Any] | None:
    """What the model's files say of the quantisation, None where they say nothing.

    The engine takes hf_quant_config.json for it where config.json has nothing of its own.
    """
    for key in CONFIG_KEYS:
        for holder in (geometry.raw, geometry.text):
            if isinstance(found := holder.get(key), Mapping):
                return found
    return geometry.side_files.get(MODELOPT_FILE)


def file_for(read: Quantised, geometry: Geometry) -> Mapping[str, Any] | None:
    """The file beside config.json that describes the quantisation in its place."""
    names = FILES.get(read.method or "", ())
    return next((file for name, file in geometry.side_files.items() if names and name.endswith(names)), None)


def read_by(told: Told, geometry: Geometry, version: Version) -> Quantised:
    """How vLLM will read the checkpoint. Raises NotTold where the files do not say."""
    if geometry.assumption or not geometry.architecture:
        unknown = geometry.facts["quant_method"]
        reason = f"how {geometry.model_id} is quantised is not known"
        raise NotTold("quant_method", unknown if isinstance(unknown, Unknown) else Unknown(reason))
    if told.hf_overrides is not None:
        raise NotTold("hf_overrides", Unknown("--hf-overrides may say how the weights are quantised"))
    return quantised(described(geometry), told.quantization, geometry.model_type, version)


def model_type_of(told: Told, geometry: Geometry) -> Located[str] | None:
    """The type of activations: the one that is asked for, else the checkpoint's; None where neither tells it for sure.

    A checkpoint in float32 is brought down to a half, and which one depends on the model.
    """
    asked = told.located("dtype")
    if asked is not None and asked.value != "auto":
        names = {"half": "float16", "float": "float32"}
        return asked.with_value(names.get(asked.value, asked.value))
    own = geometry.facts["torch_dtype"]
    if isinstance(own, Unknown) or own.value is None:
        return None
    name = str(own.value).removeprefix("torch.")
    return own.with_value(name) if name in ("bfloat16", "float16") else None
