"""AutoRound and Quark: the checkpoints of two tools, each with formats that other methods have too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shardlint.architectures.model import Missing
from shardlint.architectures.quantisation.methods import FOUR_SCALES, NO_SCALARS, Renames, awq, gptq
from shardlint.architectures.quantisation.modules import (
    Method,
    Module,
    all_or_none,
    exactly_or_by_expression,
    renamed,
    strings,
)
from shardlint.architectures.schemes import Scheme, eight_bits, mx

_EXPRESSION = re.compile(r"[*+?^$()\[\]{}|\\]")
NOT_QUANTISED = 16
"""Bits of a layer that AutoRound leaves as it is, or more."""


def auto_round(config: Mapping[str, Any], renames: Renames) -> Method:
    """AutoRound, packed as GPTQ or as AWQ packs; `extra_config` gives single layers numbers of their own."""
    if config.get("sym") is False or config.get("data_type", "int") != "int":
        raise Missing("AutoRound with zero points of its own, or in floats, is not described")
    if config.get("block_name_to_quantize") or config.get("to_quant_block_names"):
        raise Missing("AutoRound that names the blocks it packs is not described")
    as_awq = str(config.get("packing_format") or "").endswith("awq")
    of_all = (awq if as_awq else gptq)({**config, "desc_act": False, "zero_point": True}, renames)
    own = _own_numbers(config, renames)

    def scheme_of(module: Module) -> Scheme | None:
        if module.kind == "head" or _is_left(module, own):
            return None
        return of_all.scheme_of(module)

    return Method(scheme_of, NO_SCALARS)


def _own_numbers(config: Mapping[str, Any], renames: Renames) -> Mapping[str, Mapping[str, Any]]:
    extra = config.get("extra_config")
    entries = extra.items() if isinstance(extra, Mapping) else ()
    named = {str(name): numbers for name, numbers in entries if isinstance(numbers, Mapping)}
    for name, numbers in named.items():
        if _EXPRESSION.search(name):
            raise Missing(f'AutoRound that names layers by the expression "{name}" is not described')
        bits = numbers.get("bits", config.get("bits"))
        same = all(numbers.get(key, config.get(key)) == config.get(key) for key in ("bits", "group_size", "sym"))
        if not same and not (isinstance(bits, int) and bits >= NOT_QUANTISED):
            raise Missing(f"AutoRound packs {name} otherwise than the rest, which is not described")
    return dict(zip(renamed(named, renames), named.values(), strict=True))


def _is_left(module: Module, own: Mapping[str, Mapping[str, Any]]) -> bool:
    def is_left(name: str) -> bool:
        bits = own.get(name, {}).get("bits")
        return isinstance(bits, int) and bits >= NOT_QUANTISED

    return is_left(module.name) or all_or_none(module, is_left)


def quark(config: Mapping[str, Any], renames: Renames) -> Method:
    """Quark with one format for all: FP8 by tensor or by channel, or MXFP4. Its list names layers or expressions."""
    for key in ("layer_quant_config", "layer_type_quant_config"):
        if config.get(key):
            raise Missing(f"Quark with {key} is not described")
    of_all = config.get("global_quant_config")
    weight, inputs = (_part(of_all, key) for key in ("weight", "input_tensors"))
    listed = strings(config.get("exclude"))
    excluded = [name if name.startswith("re:") else renamed([name], renames)[0] for name in listed]
    left = exactly_or_by_expression(excluded)

    def scheme_of(module: Module) -> Scheme | None:
        below = any(name.startswith(f"{module.name}.") for name in excluded) if module.kind == "experts" else False
        if module.kind == "head" or below or all_or_none(module, left):
            return None
        return _quark_scheme(weight, inputs, experts=module.kind == "experts")

    return Method(scheme_of, {"grouped": FOUR_SCALES})


def _part(config: Any, key: str) -> Mapping[str, Any]:
    part = config.get(key) if isinstance(config, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _quark_scheme(weight: Mapping[str, Any], inputs: Mapping[str, Any], *, experts: bool) -> Scheme:
    kind, spread, static = weight.get("dtype"), weight.get("qscheme"), inputs.get("is_dynamic") is False
    if kind == "fp8_e4m3" and inputs.get("dtype") == kind:
        if spread == "per_tensor":
            scheme = eight_bits("fp8", per_channel=False, static_input=static, experts=experts, bias=not experts)
            return scheme._replace(balanced=not experts)
        if spread == "per_channel" and not static and not experts:
            return eight_bits("fp8", per_channel=True, experts=False)
    grouped = spread == "per_group" and weight.get("group_size") == 32 and weight.get("scale_format") == "e8m0"
    if kind == "fp4" and grouped and inputs.get("dtype") == "fp4":
        return mx(4, experts=experts, must=False)
    raise Missing(f"{kind} weights of Quark ({spread}) are not described")
