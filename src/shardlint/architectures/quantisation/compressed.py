"""compressed-tensors: groups of modules, each with its own numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardlint.architectures.model import Missing
from shardlint.architectures.quantisation.methods import Renames
from shardlint.architectures.quantisation.modules import (
    Method,
    Module,
    all_or_none,
    exactly_or_by_expression,
    renamed,
    strings,
)
from shardlint.architectures.rows import ElementType
from shardlint.architectures.schemes import (
    Companion,
    Must,
    Scheme,
    eight_bits,
    fp8_blocks,
    grouped_integers,
    mx,
    nvfp4,
)
from shardlint.findings.records import NamedTuple

CACHE_SCALARS: Mapping[ElementType, int] = {"float32": 3, "model": 3}
"""Of keys, values and queries: scales in 32 bits and zero points of the model's type."""


class Group(NamedTuple):
    """The modules of one group, and what it says of their weights and inputs."""

    targets: Callable[[str], bool]
    every_linear: bool
    weights: Mapping[str, Any]
    inputs: Mapping[str, Any] | None
    format: str


def compressed_tensors(config: Mapping[str, Any], renames: Renames) -> Method:
    """Exact names or expressions, tried on each shard, in `ignore` and in the targets of the groups."""
    ignored = exactly_or_by_expression(_names(config.get("ignore"), renames))
    groups = _groups(config, renames)
    cache = config.get("kv_cache_scheme")
    if isinstance(cache, Mapping) and cache.get("strategy") not in (None, "tensor"):
        raise Missing("scales of the cache for each head are not described")

    def scheme_of(module: Module) -> Scheme | None:
        if all_or_none(module, ignored):
            return None
        group = _group_of(module, groups)
        return None if group is None else _scheme(group, experts=module.kind == "experts")

    return Method(scheme_of, {"grouped": CACHE_SCALARS})


def _names(listed: Any, renames: Renames) -> list[str]:
    names = strings(listed)
    return [name if name.startswith("re:") else renamed([name], renames)[0] for name in names]


def _groups(config: Mapping[str, Any], renames: Renames) -> list[Group]:
    groups = config.get("config_groups")
    found = []
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights, inputs = group.get("weights"), group.get("input_activations")
        targets = _names(group.get("targets"), renames)
        if not targets:
            raise Missing("a group of the quantisation config names no targets")
        if len(targets) == 1 and targets[0].endswith("Attention"):
            continue
        if not isinstance(weights, Mapping):
            raise Missing("a group of the quantisation config says nothing of its weights")
        if group.get("output_activations"):
            raise Missing("quantised outputs are not described")
        own_format = str(group.get("format") or config.get("format") or "")
        every_linear = any(target in ("Linear", "RoutedExperts") for target in targets)
        kept = inputs if isinstance(inputs, Mapping) else None
        found.append(Group(exactly_or_by_expression(targets), every_linear, weights, kept, own_format))
    return found


def _group_of(module: Module, groups: Sequence[Group]) -> Group | None:
    """A group that names the module, else one that takes all linear layers. Heads are no linear layers."""
    for group in groups:
        if group.targets(module.name) or (module.shards and all(group.targets(shard) for shard in module.shards)):
            return group
    everything = (group for group in groups if group.every_linear)
    return None if module.kind == "head" else next(everything, None)


def _scheme(group: Group, *, experts: bool) -> Scheme:
    weights, inputs = group.weights, group.inputs
    bits, kind, strategy = weights.get("num_bits"), weights.get("type", "int"), weights.get("strategy")
    if kind == "float" and bits == 4:
        return _four_bit_float(strategy, inputs, experts=experts)
    if kind == "float" and bits == 8:
        return _eight_bit_float(weights, inputs, experts=experts)
    if kind == "int" and inputs is None and group.format == "pack-quantized" and bits in (4, 8):
        return _packed(weights, int(bits), experts=experts)
    if kind == "int" and bits == 8 and inputs is not None and inputs.get("num_bits") == 8:
        return _eight_bit_integers(weights, inputs, experts=experts)
    raise Missing(f"{bits}-bit {kind} weights ({strategy}, {group.format or 'no format'}) are not described")


def _four_bit_float(strategy: Any, inputs: Mapping[str, Any] | None, *, experts: bool) -> Scheme:
    if strategy == "tensor_group":
        has_input = experts or inputs is not None
        return nvfp4(experts=experts, own_input=Companion(32, "projections") if has_input else None)._replace(musts=())
    if strategy == "group":
        return mx(4, experts=experts, must=False)
    raise Missing(f"4-bit floats by {strategy} are not described")


def _eight_bit_float(weights: Mapping[str, Any], inputs: Mapping[str, Any] | None, *, experts: bool) -> Scheme:
    strategy = weights.get("strategy")
    if strategy == "block":
        blocks = weights.get("block_structure")
        if not isinstance(blocks, (list, tuple)) or len(blocks) != 2 or not all(isinstance(b, int) for b in blocks):
            raise Missing(f"block_structure is {blocks!r}, not two whole numbers")
        return fp8_blocks(blocks[0], blocks[1], experts=experts)._replace(bias="never" if experts else "as_built")
    if strategy == "group" and weights.get("group_size") == 32:
        return mx(8, experts=experts, must=False)
    if strategy not in ("tensor", "channel"):
        raise Missing(f"8-bit floats by {strategy} are not described")
    static = inputs is not None and not inputs.get("dynamic")
    return eight_bits("fp8", per_channel=strategy == "channel", static_input=static, experts=experts, bias=not experts)


def _packed(weights: Mapping[str, Any], bits: int, *, experts: bool) -> Scheme:
    strategy, group = weights.get("strategy"), weights.get("group_size")
    grouped = group if isinstance(group, int) and group > 0 and strategy != "channel" else None
    if experts and grouped is None:
        raise Missing("experts that are packed by channels are not described")
    # the shape before packing: two 64-bit numbers, of experts two of the model's type
    shape = Companion(2 * 16 if experts else 2 * 64, "matrix")
    musts = (
        ()
        if grouped is None
        else (Must("width", grouped), Must("ins", grouped))
        if experts
        else (Must("ins", grouped),)
    )
    scheme = grouped_integers(bits, grouped, zero_points=weights.get("symmetric") is False, musts=musts, shape=shape)
    return scheme._replace(balanced=not experts)


def _eight_bit_integers(weights: Mapping[str, Any], inputs: Mapping[str, Any], *, experts: bool) -> Scheme:
    strategy, static = weights.get("strategy"), not inputs.get("dynamic")
    if strategy not in ("tensor", "channel") or (experts and (static or strategy == "tensor")):
        raise Missing(f"8-bit integers by {strategy} are not described")
    scheme = eight_bits("int8", per_channel=strategy == "channel", experts=experts)._replace(balanced=not experts)
    if not static:
        return scheme
    zero_point = () if inputs.get("symmetric", True) else (Companion(8, "matrix"),)
    return scheme._replace(companions=(*scheme.companions, Companion(32, "matrix"), *zero_point))
