"""How many bytes an element takes, as the engine decides it from its options and the model's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.architectures.rows import Rows
from shardlint.facts import Geometry
from shardlint.findings import Located, Unknown

ELEMENT_BYTES = {"float32": 4, "int32": 4}

TYPE_BYTES = {"half": 2, "float16": 2, "bfloat16": 2, "float": 4, "float32": 4}
_CHECKPOINT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 2}
"""A float32 checkpoint is built in 16 bits where nobody asks for more."""
_CACHE_BYTES = {
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
    "int8": 1,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
}


def model_element_bytes(geometry: Geometry, dtype: str | None) -> int | Unknown:
    """Bytes of an element of the model's own type under `--dtype`; None and `auto` take the checkpoint's."""
    if dtype not in (None, "auto"):
        return TYPE_BYTES.get(dtype, Unknown(f"--dtype {dtype} is no type of a known size"))
    written = geometry.facts.get("torch_dtype")
    name = str(written.value).removeprefix("torch.") if isinstance(written, Located) and written.value else "bfloat16"
    return _CHECKPOINT_BYTES.get(name, Unknown(f"torch_dtype {name} is no type of a known size"))


def cache_type(rows: Rows, kv_cache_dtype: str | None, capability: str | None) -> str | None:
    """`--kv-cache-dtype` as the model's class has it on a card of this compute capability."""
    major = (capability or "").partition(".")[0]
    chooses = kv_cache_dtype in (None, "auto") and rows.fp8_cache_on is not None
    return "fp8_e4m3" if chooses and major == str(rows.fp8_cache_on) else kv_cache_dtype


def cache_element_bytes(geometry: Geometry, kv_cache_dtype: str | None, model_bytes: int | Unknown) -> int | Unknown:
    """Bytes of an element of the KV cache under `--kv-cache-dtype`; `auto` follows the checkpoint, then the model."""
    if kv_cache_dtype not in (None, "auto"):
        return _CACHE_BYTES.get(kv_cache_dtype, Unknown(f"--kv-cache-dtype {kv_cache_dtype} has no known size"))
    return 1 if _modelopt_asks_for_fp8_cache(geometry) else model_bytes


def _modelopt_asks_for_fp8_cache(geometry: Geometry) -> bool:
    config = _mapping(geometry.raw.get("quantization_config"))
    if str(config.get("quant_method", "")).startswith("modelopt"):
        scheme = _mapping(config.get("kv_cache_scheme"))
        return config.get("kv_cache_quant_algo") == "FP8" or (
            scheme.get("type") == "float" and scheme.get("num_bits") == 8
        )
    beside = _mapping(geometry.side_files.get("hf_quant_config.json"))
    from_modelopt = _mapping(beside.get("producer")).get("name") == "modelopt"
    return from_modelopt and _mapping(beside.get("quantization")).get("kv_cache_quant_algo") == "FP8"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
