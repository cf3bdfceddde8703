"""A quantisation that the checkpoint, its type or its card does not go with."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import NotTold, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm import quantisation
from shardlint.facts import Accelerator, Geometry
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._cards import capability_of
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._quantised import described, file_for, model_type_of, read_by
from shardlint.rules._words import listed

BROUGHT_BY_OTHERS = ("ascend", "mlx", "neuron_quant")
"""Methods of packages for other platforms, which register them."""

APART_EVER_SINCE = ("awq", "gptq", "fp8", "compressed-tensors")
"""Checkpoints that no release read as one another."""

CONDITIONS = (
    Condition(
        ("quantization",),
        lambda t: t.read.differs,
        lambda t: (
            f"the checkpoint is quantised {f'by {t.read.named}' if t.read.named else 'without the name of a method'}, "
            f"and --quantization says {t.read.asked}"
        ),
        help=lambda t: ("leave --quantization out: the checkpoint says it",),
        since="0.33.0",
    ),
    Condition(
        ("quantization",),
        lambda t: t.read.asked != t.read.named and {t.read.asked, t.read.named} <= set(APART_EVER_SINCE),
        lambda t: f"the checkpoint is quantised by {t.read.named}, and --quantization says {t.read.asked}",
        help=lambda t: ("leave --quantization out: the checkpoint says it",),
        until="0.32.0",
    ),
    Condition(
        ("quantization", "model"),
        lambda t: (
            t.read.method is not None
            and t.read.method not in BROUGHT_BY_OTHERS
            and quantisation.has(t.read.method, t.release) is False
            and not quantisation.is_removed(t.read.method, t.release)
        ),
        lambda t: f"there is no quantisation method {t.read.method}",
        help=lambda t: ("leave --quantization out",) if t.read.asked else (),
    ),
    Condition(
        ("quantization",),
        lambda t: t.lacks_file and t.read.method in quantisation.FILES,
        lambda t: (
            f"--quantization {t.read.asked} is for a checkpoint that is quantised so, and config.json says nothing of "
            f"it, nor is there a {' or '.join(quantisation.FILES[t.read.method])}"
        ),
        help=lambda t: ("a checkpoint that is quantised by it", "--quantization fp8 quantises a plain checkpoint"),
    ),
    Condition(
        ("quantization",),
        lambda t: not t.read.is_described and t.read.method in quantisation.ONLY_OF_CHECKPOINTS,
        lambda t: (
            f"--quantization {t.read.asked} is for a checkpoint that is quantised so, and config.json does not say how"
        ),
        help=lambda t: ("a checkpoint that is quantised by it", "--quantization fp8 quantises a plain checkpoint"),
    ),
    Condition(
        ("quantization", "quantization_config"),
        lambda t: not t.read.is_described and t.read.method == "online" and t.quantization_config is None,
        lambda t: "--quantization online does what --quantization-config says, and there is none",
        help=lambda t: ("--quantization fp8_per_tensor",),
        since="0.33.0",
    ),
    Condition(
        ("quantization", "model"),
        lambda t: bool(_missing(t)),
        lambda t: (
            f"the checkpoint is quantised by {t.read.method}, and its description has no {' or '.join(_missing(t)[0])}"
        ),
        help=lambda t: (f"{_missing(t)[0][-1]} in quantization_config",),
        since="0.33.0",
    ),
    Condition(
        ("model",),
        lambda t: (
            t.read.method == "auto_awq"
            and isinstance(bits := _of(t, "w_bit", "bits"), int)
            and bits != quantisation.BITS_OF_AWQ
        ),
        lambda t: f"AWQ is of 4 bits, and the checkpoint has {_of(t, 'w_bit', 'bits')}",
        since="0.33.0",
    ),
    Condition(
        ("model",),
        lambda t: t.read.method == "auto_gptq" and quantisation.is_ordered_by_activation(t.described),
        lambda t: (
            "the checkpoint of GPTQ is ordered by its activations (desc_act) in groups of "
            f"{_of(t, 'group_size')}, for which there is no kernel any more"
        ),
        help=lambda t: ("a checkpoint with desc_act false, or with group_size -1",),
        since="0.33.0",
    ),
    Condition(
        ("model",),
        lambda t: (
            t.read.method == "auto_gptq"
            and not _missing(t)
            and (_of(t, "bits") not in quantisation.BITS_OF_GPTQ or _of(t, "sym") is not True)
        ),
        lambda t: (
            f"GPTQ is of {' or '.join(map(str, quantisation.BITS_OF_GPTQ))} bits and symmetric, and the checkpoint has "
            f"{_of(t, 'bits')} bits{'' if _of(t, 'sym') is True else ' with zero points'}"
        ),
        since="0.33.0",
    ),
    Condition(
        ("model",),
        lambda t: (
            bool(t.described)
            and (t.read.method or "").startswith("modelopt")
            and quantisation.modelopt_algorithm(t.described) not in quantisation.ALGORITHMS_OF_MODELOPT
        ),
        lambda t: (
            f"the checkpoint is quantised by ModelOpt with {quantisation.modelopt_algorithm(t.described) or 'no'} "
            f"quant_algo, and there are {listed(quantisation.ALGORITHMS_OF_MODELOPT)}"
        ),
        since="0.33.0",
    ),
    Condition(
        ("quantization",),
        lambda t: t.read.asked == "humming" and t.read.named == "mxfp4" and t.model_type == "gpt_oss",
        lambda t: "the experts of gpt-oss are run by Humming with another option than --quantization",
        help=lambda t: ("--moe-backend humming",),
        since="0.33.0",
    ),
    Condition(
        ("dtype", "quantization", "model"),
        lambda t: t.type is not None and t.read.method is not None and t.type not in quantisation.types_of(t.read),
        lambda t: (
            f"quantisation by {t.read.method} works with {listed(quantisation.types_of(t.read))}, and the model's type "
            f"is {t.type}"
        ),
        help=lambda t: (f"--dtype {quantisation.types_of(t.read)[0]}",),
        since="0.33.0",
    ),
    Condition(
        ("quantization", "model"),
        lambda t: t.capability is not None and t.capability < quantisation.least_capability(t.read),
        lambda t: (
            f"quantisation by {t.read.method} needs compute capability "
            f"{quantisation.least_capability(t.read) / 10}, and {t.card} has {t.capability / 10}"
        ),
        sum=lambda t: f"{t.capability} < {quantisation.least_capability(t.read)}",
        since="0.33.0",
    ),
)


def _of(told: Told, *names: str) -> object:
    """What the checkpoint's description says under the first of these names that it has."""
    return next((told.described[name] for name in names if name in told.described), None)


def _missing(told: Told) -> tuple[tuple[str, ...], ...]:
    """What the method wants of a description and does not find."""
    wanted = quantisation.KEYS.get(told.read.method or "", ()) if told.described else ()
    return tuple(names for names in wanted if not any(name in told.described for name in names))


def judge(
    told: Told,
    geometry: Geometry,
    engine: Engine,
    engine_version: Located[Version],
    accelerators: Located[tuple[Accelerator, ...]] | None = None,
) -> Iterator[Problem | Undecided]:
    read = read_by(told, geometry, engine_version.value)
    if read.asked is None and not read.is_described:
        return
    file = None if read.is_described else file_for(read, geometry)
    known = told.also(
        read=Located(read),
        release=Located(engine_version.value),
        described=Located((described(geometry) if read.is_described else file) or {}),
        lacks_file=Located(geometry.has_files and not read.is_described and file is None),
        model_type=Located(geometry.model_type),
        type=_type(told, geometry),
        capability=Located(capability_of(accelerators)),
        card=Located(accelerators.value[0].name if accelerators is not None and accelerators.value else ""),
    )
    yield from judged(CONDITIONS, known, engine, engine_version)


def _type(told: Told, geometry: Geometry) -> Located[str | None]:
    try:
        found = model_type_of(told, geometry)
    except NotTold:
        found = None
    return Located(None) if found is None else found.with_value(found.value)


RULE = Rule("SL605", "quantization-method", "model-support", "error", "refuses-at-start", judge)
