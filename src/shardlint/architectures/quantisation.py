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

    The engine takes no notice of a `quantization_config` that names no method (MLX writes such).
    """
    fact = geometry.facts.get("quant_method")
    if isinstance(fact, Unknown):
        return None if quantization_config(geometry) else fact
    return None if fact is None or fact.value is None else str(fact.value)


def quantization_config(geometry: Geometry) -> Mapping[str, Any]:
    """The config's own statement, empty where there is none."""
    for holder in (geometry.raw, geometry.text):
        found = holder.get("quantization_config")
        if isinstance(found, Mapping):
            return found
    return {}


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
        return 8 if config.get("quant_algo") == "FP8" else 4
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
