"""FP8, ModelOpt, AWQ, GPTQ and MXFP4: from a checkpoint's own words to how each of its modules is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardlint.architectures.model import Missing
from shardlint.architectures.quantisation.checkpoint import modelopt_config
from shardlint.architectures.quantisation.modules import (
    Method,
    Module,
    all_or_none,
    containing,
    exactly,
    expression,
    renamed,
    strings,
    wildcards,
)
from shardlint.architectures.rows import AttentionKind, ElementType
from shardlint.architectures.schemes import (
    Companion,
    Must,
    Refinement,
    Scheme,
    eight_bits,
    fp8_blocks,
    grouped_integers,
    mx,
    nvfp4,
)

Renames = Sequence[tuple[str, str]]
Algorithm = Callable[[Module], Scheme]

NO_SCALARS: Mapping[AttentionKind, Mapping[ElementType, int]] = {}
FOUR_SCALES: Mapping[ElementType, int] = {"model": 4}
"""Of queries, keys, values and probabilities, until they are folded into the kernel's own."""
HIDDEN_MULTIPLE = 128
"""What the model's width has to be a multiple of, or another kernel takes the packed experts."""
HALVED_TO = 32
"""The smallest group of the kernel that takes over experts whose width is not whole groups."""


def fp8(config: Mapping[str, Any], renames: Renames) -> Method:
    """FP8 with one scale for each tensor or block. Its list names what it leaves alone, exactly."""
    listed = strings(config.get("ignored_layers")) or strings(config.get("modules_to_not_convert"))
    ignored = renamed(listed, renames)
    static, blocks = config.get("activation_scheme") == "static", _two_numbers(config.get("weight_block_size"))

    def scheme_of(module: Module) -> Scheme | None:
        if module.kind == "head" or _is_left_by_fp8(module, ignored):
            return None
        experts = module.kind == "experts"
        if blocks:
            return fp8_blocks(*blocks, experts=experts, lenient=True)
        return eight_bits("fp8", per_channel=False, static_input=static, experts=experts)

    def table_scheme_of(module: Module) -> Scheme | None:
        part = f"{module.name}.shard_"
        left = module.name in ignored or any(name.startswith(part) for name in ignored)
        return None if left else eight_bits("fp8", per_channel=False, experts=False)

    return Method(scheme_of, {"grouped": FOUR_SCALES}, table_scheme_of)


def _is_left_by_fp8(module: Module, ignored: Sequence[str]) -> bool:
    if module.kind == "experts":
        return any(module.name in name for name in ignored)
    return module.name in ignored or all_or_none(module, exactly(ignored))


def _two_numbers(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(_is_positive(item) for item in value):
        raise Missing(f"weight_block_size is {value!r}, not two whole numbers")
    return value[0], value[1]


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def awq(config: Mapping[str, Any], renames: Renames) -> Method:
    """AWQ: 4 bits in groups with zero points; its list holds parts of names."""
    bits = _bits(config, "bits", "w_bit")
    group = _group(config, "group_size", "q_group_size")
    if group is None:
        raise Missing("AWQ without groups is not described")
    zero_points = config.get("zero_point") is not False
    left = containing(renamed(strings(config.get("modules_to_not_convert")), renames))
    musts = (Must("ins", group),)

    def scheme_of(module: Module) -> Scheme | None:
        if module.kind == "head":
            return grouped_integers(bits, group, zero_points=True, musts=musts) if config.get("lm_head") else None
        if module.kind == "experts":
            return None if left(module.name) else _awq_experts(bits, group, zero_points=zero_points)
        return None if all_or_none(module, left) else grouped_integers(bits, group, zero_points=True, musts=musts)

    return Method(scheme_of, NO_SCALARS)


def _awq_experts(bits: int, group: int, *, zero_points: bool) -> Scheme:
    fallback = grouped_integers(bits, group, zero_points=zero_points)._replace(bias="never", balanced=False)
    scheme = grouped_integers(bits, group, zero_points=True)._replace(bias="never", balanced=False)
    return _halving(scheme, fallback, group)


def _halving(scheme: Scheme, fallback: Scheme, group: int | None) -> Scheme:
    """Experts whose width is not whole groups go to another kernel, which halves the groups until it is."""
    if group is None:
        return scheme
    return scheme._replace(
        musts=(Must("width", group),), refinement=Refinement("halving", group, fallback, HALVED_TO, HIDDEN_MULTIPLE)
    )


def by_other_kernel(method: Method, module: Module) -> Scheme | None:
    """A module as the kernel stores it that otherwise only takes what the first one cannot have (`moe_wna16`)."""
    scheme = method.scheme_of(module)
    if scheme is None or scheme.refinement is None or scheme.refinement.how != "halving":
        return scheme
    always = scheme.refinement._replace(hidden=1)
    return scheme.refinement.becomes._replace(musts=scheme.musts, refinement=always)


def gptq(config: Mapping[str, Any], renames: Renames) -> Method:
    """GPTQ: groups and packed rows that do not come out even are rounded down; zero points are always kept.

    Rules of `dynamic` may leave modules alone or give them other numbers; they are tried on the merged names.
    """
    listed = containing(quantised := renamed(strings(config.get("modules_in_block_to_quantize")), renames))
    rules = _dynamic_rules(config.get("dynamic"))

    def scheme_of(module: Module) -> Scheme | None:
        if module.kind == "head":
            return _gptq_scheme(module, config) if config.get("lm_head") else None
        own = _override(rules, module.name)
        if own is None or (module.kind == "linear" and quantised and not all_or_none(module, listed)):
            return None
        return _gptq_scheme(module, {**config, **own})

    return Method(scheme_of, NO_SCALARS)


def _gptq_scheme(module: Module, config: Mapping[str, Any]) -> Scheme:
    bits, group = _bits(config, "bits"), _group(config, "group_size")
    if config.get("sym") is False:
        raise Missing("GPTQ with zero points of its own (sym false) is not described")
    scheme = grouped_integers(bits, group, zero_points=True)
    if module.kind != "experts":
        return scheme
    fallback = grouped_integers(bits, group, zero_points=False)._replace(bias="never", balanced=False)
    return _halving(scheme._replace(bias="always", balanced=False), fallback, group)


def _dynamic_rules(dynamic: Any) -> list[tuple[bool, Callable[[str], Any], Mapping[str, Any]]]:
    """(leaves alone, match, own numbers) of every rule."""
    rules = dynamic.items() if isinstance(dynamic, Mapping) else ()
    return [
        (str(text).startswith("-:"), expression(str(text).removeprefix("-:").removeprefix("+:")).match, own)
        for text, own in rules
        if isinstance(own, Mapping)
    ]


def _override(
    rules: Sequence[tuple[bool, Callable[[str], Any], Mapping[str, Any]]], name: str
) -> Mapping[str, Any] | None:
    """A module's own numbers by the first rule that matches; None where that leaves it alone."""
    for leaves, matches, own in rules:
        if matches(name):
            return None if leaves else own
    return {}


def _bits(config: Mapping[str, Any], *keys: str) -> int:
    bits = next((config[key] for key in keys if key in config), None)
    if not isinstance(bits, int) or bits not in (4, 8):
        raise Missing(f"{keys[0]} of the quantisation config is {bits!r}, and only 4 and 8 bits are described")
    return bits


def _group(config: Mapping[str, Any], *keys: str) -> int | None:
    """Inputs of a group; None for -1, one group over all of them."""
    group = next((config[key] for key in keys if key in config), None)
    if group == -1:
        return None
    if not isinstance(group, int) or not _is_positive(group):
        raise Missing(f"{keys[0]} of the quantisation config is {group!r}, not a whole number")
    return group


def mxfp4(config: Mapping[str, Any], renames: Renames) -> Method:
    """MXFP4 as in gpt-oss: the experts only, whatever its list says, padded to what the card's kernel takes."""

    def scheme_of(module: Module) -> Scheme | None:
        packed = mx(4, experts=True, must=False, padded=True)._replace(balanced=False)
        return packed if module.kind == "experts" else None

    return Method(scheme_of, NO_SCALARS)


def deepseek_v4(config: Mapping[str, Any], renames: Renames) -> Method:
    """DeepSeek V4: FP8 in blocks with 8-bit scales, and experts in MXFP4, or in NVFP4 where a key says so."""
    of_linears = fp8(config, renames)
    nvfp4_experts = str(config.get("moe_quant_algo") or "").upper() == "NVFP4"

    def scheme_of(module: Module) -> Scheme | None:
        scheme = of_linears.scheme_of(module)
        if scheme is None:
            return None
        if module.kind == "experts":
            return _nvfp4(module) if nvfp4_experts else mx(4, experts=True, must=False, padded=True)
        return scheme._replace(companions=tuple(companion._replace(bits=8) for companion in scheme.companions))

    return Method(scheme_of, NO_SCALARS)


def modelopt(config: Mapping[str, Any], renames: Renames) -> Method:
    """ModelOpt, by `quant_algo`, in one of its two spellings of the config. It packs the output head too."""
    keys = modelopt_config(config)
    algorithm = str(keys.get("quant_algo") or "").upper()
    # the nested spelling has one key for what is left alone, the flat one two of which the newer counts
    listed = keys.get("exclude_modules") if keys is not config else keys.get("ignore", keys.get("exclude_modules"))
    excluded = _excluded(strings(listed), renames)
    if algorithm == "MIXED_PRECISION":
        return _mixed(keys, renames, excluded)
    scheme_for = _algorithm(algorithm)

    def scheme_of(module: Module) -> Scheme | None:
        if excluded(module) or _is_old_tower(module):
            return None
        # one method takes the experts of all FP8 algorithms, with a scale for each tensor
        return _fp8_static(module) if module.kind == "experts" and algorithm.startswith("FP8") else scheme_for(module)

    return Method(scheme_of, {"grouped": FOUR_SCALES, "latent": FOUR_SCALES})


def _is_old_tower(module: Module) -> bool:
    """Towers that checkpoints of before ModelOpt 0.39 did not name in their lists."""
    return any(part in module.name for part in ("vision_tower", "vision_model", "vit_large_projector"))


def _excluded(listed: Sequence[str], renames: Renames) -> Callable[[Module], bool]:
    """Exact names of shards, then parts of names, then shell patterns."""
    names = renamed(_split_stars(listed) if renames else listed, renames)
    is_listed, holds_part, matches = exactly(names), containing(names), wildcards(names)

    def excluded(module: Module) -> bool:
        if not names:
            return False
        listed = _is_left_by_fp8(module, names) if module.kind == "experts" else all_or_none(module, is_listed)
        below = module.name.removeprefix("language_model.")
        return listed or holds_part(module.name) or holds_part(below) or matches(module.name)

    return excluded


def _split_stars(listed: Sequence[str]) -> list[str]:
    """`x*` becomes `x` and `x.*`, as the engine does for models whose names it maps."""
    split: list[str] = []
    for name in listed:
        starred = len(name) >= 2 and name[-1] == "*" and name[-2] != "."
        split += [name[:-1], name[:-1] + ".*"] if starred else [name]
    return split


def _mixed(keys: Mapping[str, Any], renames: Renames, excluded: Callable[[Module], bool]) -> Method:
    layers = keys.get("quantized_layers")
    named = {
        name: str(recipe.get("quant_algo", "")).upper()
        for name, recipe in (layers.items() if isinstance(layers, Mapping) else ())
        if isinstance(recipe, Mapping)
    }
    algorithms = dict(zip(renamed(named, renames), named.values(), strict=True))
    parents = _by_parent(algorithms)

    def scheme_of(module: Module) -> Scheme | None:
        found = None if excluded(module) else _algorithm_of(module, algorithms, parents)
        return None if found is None else _algorithm(found)(module)

    has_cache_scales = bool(keys.get("kv_cache_quant_algo") or keys.get("kv_cache_scheme"))
    return Method(scheme_of, {"grouped": FOUR_SCALES} if has_cache_scales else NO_SCALARS)


def _by_parent(algorithms: Mapping[str, str]) -> dict[str, str]:
    """The algorithm of the first module named below each module."""
    parents: dict[str, str] = {}
    for name, algorithm in algorithms.items():
        while "." in name:
            name = name.rpartition(".")[0]
            parents.setdefault(name, algorithm)
    return parents


def _algorithm_of(module: Module, algorithms: Mapping[str, str], parents: Mapping[str, str]) -> str | None:
    """By its own name, by those of its shards, which must agree, or by what is named below it."""
    names = [spelling for name in (module.name, *module.shards) for spelling in _spellings(name)]
    found = {algorithms[name] for name in names if name in algorithms}
    if len(found) > 1:
        raise Missing(f"the parts of {module.name} are quantised by different methods")
    if found:
        return found.pop()
    for name in _spellings(module.name):
        if name in parents:
            return parents[name]
    return parents.get(module.name.rpartition(".")[0]) if module.kind == "experts" else None


def _spellings(name: str) -> tuple[str, ...]:
    for ours, other in (
        ("language_model.model.", "model.language_model."),
        ("model.language_model.", "language_model.model."),
    ):
        if name.startswith(ours):
            return name, other + name[len(ours) :]
    return (name, "lm_head") if name.endswith(".lm_head") else (name,)


def _algorithm(name: str) -> Algorithm:
    """How one algorithm of ModelOpt stores a module."""
    if name not in ALGORITHMS:
        raise Missing(f"the quantisation {name or 'without quant_algo'} of ModelOpt is not described")
    return ALGORITHMS[name]


def _fp8_static(module: Module) -> Scheme:
    experts = module.kind == "experts"
    scheme = eight_bits("fp8", per_channel=False, static_input=True, experts=experts, bias=not experts)
    return scheme._replace(balanced=not experts)


def _fp8_channel(module: Module) -> Scheme:
    if module.kind == "experts":
        raise Missing("experts in fp8 with a scale for each channel are not described for ModelOpt")
    return eight_bits("fp8", per_channel=True, experts=False)


def _fp8_blocks(module: Module) -> Scheme:
    if module.kind == "experts":
        return fp8_blocks(128, 128, experts=True, lenient=True)._replace(balanced=False)
    return fp8_blocks(128, 128, experts=False)._replace(musts=(Must("ins", 128),))


def _nvfp4(module: Module) -> Scheme:
    return nvfp4(experts=module.kind == "experts", own_input=Companion(32, "projections"))


def _nvfp4_without_inputs(module: Module) -> Scheme:
    """The inputs' scale, which older exports have, is kept in the model's type until it is dropped."""
    experts = module.kind == "experts"
    return nvfp4(experts=experts, own_input=Companion(32 if experts else None, "projections"))


def _mxfp8(module: Module) -> Scheme:
    return mx(8, experts=module.kind == "experts", must=module.kind != "experts")


ALGORITHMS: Mapping[str, Algorithm] = {
    "FP8": _fp8_static,
    "FP8_PER_CHANNEL_PER_TOKEN": _fp8_channel,
    "FP8_PB_WO": _fp8_blocks,
    "FP8_BLOCK_SCALES": _fp8_blocks,
    "NVFP4": _nvfp4,
    "W4A16_NVFP4": _nvfp4_without_inputs,
    "MXFP8": _mxfp8,
}
"""What ModelOpt calls its formats."""
