"""Whether a checkpoint is quantised, and how few bits its packed rows may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.facts import Geometry
from shardlint.findings import Unknown

_EIGHT_BITS = ("fp8", "fbgemm_fp8", "fp8_e4m3", "experts_int8", "mxfp8")
_FOUR_BITS = ("mxfp4", "modelopt_fp4", "modelopt_mixed")


def quantisation_of(geometry: Geometry) -> str | Unknown | None:
    """The method by which the checkpoint is quantised, None for a plain one.

    The engine takes no notice of a `quantization_config` that names no method (MLX writes such), and of a
    hf_quant_config.json whose producer is not ModelOpt.
    """
    if not quantization_config(geometry):
        return None
    fact = geometry.facts.get("quant_method")
    if fact is None or isinstance(fact, Unknown) or fact.value is None:
        return None
    return str(fact.value)


def quantization_config(geometry: Geometry) -> Mapping[str, Any]:
    """What the model's files say of the quantisation, empty where they say nothing that counts."""
    for key in ("quantization_config", "compression_config"):
        for holder in (geometry.raw, geometry.text):
            if isinstance(found := holder.get(key), Mapping):
                return found
    beside = geometry.side_files.get("hf_quant_config.json", {})
    return beside if _is_of_modelopt(beside) else {}


def _is_of_modelopt(beside: Mapping[str, Any]) -> bool:
    producer = beside.get("producer")
    return isinstance(producer, Mapping) and producer.get("name") == "modelopt"


def modelopt_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a ModelOpt config that holds its keys: older ones nest them under `quantization`."""
    nested = config.get("quantization")
    return nested if isinstance(nested, Mapping) else config


def least_bits(geometry: Geometry, method: str) -> int | None:
    """The fewest bits that an element of a quantised row takes; None where the method does not tell."""
    config = quantization_config(geometry)
    if method in _EIGHT_BITS:
        return 8
    if method in _FOUR_BITS:
        return 4
    if method == "bitsandbytes":
        return 8 if config.get("load_in_8bit") else 4
    if method.startswith("modelopt"):
        return 8 if modelopt_config(config).get("quant_algo") == "FP8" else 4
    if method == "compressed-tensors":
        return min(_group_bits(config), default=None)
    bits = config.get("bits")
    return bits if isinstance(bits, int) and 1 <= bits <= 16 else None


def _group_bits(config: Mapping[str, Any]) -> Iterator[int]:
    groups = config.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if isinstance(bits, int) and 1 <= bits <= 16:
            yield bits
