"""Quantisation methods of vLLM: which release has which, what it makes of a checkpoint's, and what each asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.engines.versions import Version
from shardlint.engines.vllm.architectures import is_within, samples_around
from shardlint.findings.records import NamedTuple

Ranges = Mapping[str, tuple[str, str | None]]

METHODS: Ranges = {
    "aqlm": ("0.6.3", "0.10.0"),
    "auto-round": ("0.9.0", "0.14.1"),
    "auto_awq": ("0.24.0", None),
    "auto_gptq": ("0.22.0", None),
    "awq": ("0.6.3", None),
    "awq_marlin": ("0.6.3", None),
    "bitblas": ("0.8.5", "0.15.1"),
    "bitsandbytes": ("0.6.3", "0.27.1"),
    "compressed-tensors": ("0.6.3", None),
    "cpu_awq": ("0.12.0", "0.22.1"),
    "cpu_gptq": ("0.12.0", "0.13.0"),
    "deepseek_v4_fp8": ("0.20.0", None),
    "deepspeedfp": ("0.6.3", "0.14.1"),
    "experts_int8": ("0.6.3", None),
    "fbgemm_fp8": ("0.6.3", None),
    "fp8": ("0.6.3", None),
    "fp8_per_block": ("0.20.0", None),
    "fp8_per_channel": ("0.24.0", None),
    "fp8_per_tensor": ("0.20.0", None),
    "fp_quant": ("0.11.1", None),
    "gguf": ("0.6.3", "0.23.0"),
    "gpt_oss_mxfp4": ("0.20.0", None),
    "gptq": ("0.6.3", None),
    "gptq_bitblas": ("0.8.5", "0.15.1"),
    "gptq_marlin": ("0.6.3", None),
    "gptq_marlin_24": ("0.6.3", "0.15.1"),
    "hqq": ("0.6.5", "0.14.1"),
    "humming": ("0.20.0", None),
    "inc": ("0.10.0", None),
    "int8_per_channel_weight_only": ("0.20.0", None),
    "ipex": ("0.6.3", "0.15.1"),
    "marlin": ("0.6.3", "0.10.1.1"),
    "modelopt": ("0.6.3", None),
    "modelopt_fp4": ("0.9.0", None),
    "modelopt_mixed": ("0.17.0", None),
    "modelopt_mxfp8": ("0.16.0", None),
    "moe_wna16": ("0.7.1", None),
    "mxfp4": ("0.10.1", None),
    "mxfp8": ("0.19.0", None),
    "neuron_quant": ("0.6.3", "0.10.1.1"),
    "nvfp4": ("0.8.0", "0.8.5.post1"),
    "nvfp4_per_token": ("0.26.0", None),
    "online": ("0.20.0", None),
    "petit_nvfp4": ("0.10.2", "0.19.1"),
    "ptpc_fp8": ("0.7.3", "0.18.1"),
    "qqq": ("0.6.3", "0.10.1.1"),
    "quark": ("0.7.0", None),
    "rtn": ("0.9.2", "0.14.1"),
    "torchao": ("0.8.4", None),
    "tpu_int8": ("0.6.3", "0.13.0"),
}
"""Method -> the oldest and the newest of the releases that were looked at and have it; None for all since."""

DEPRECATED: Ranges = {
    "auto-round": ("0.14.0", "0.14.1"),
    "bitblas": ("0.14.0", "0.15.1"),
    "deepspeedfp": ("0.14.0", "0.14.1"),
    "experts_int8": ("0.14.0", "0.19.1"),
    "fbgemm_fp8": ("0.14.0", None),
    "fp_quant": ("0.14.0", None),
    "gptq_bitblas": ("0.14.0", "0.15.1"),
    "gptq_marlin_24": ("0.14.0", "0.15.1"),
    "hqq": ("0.14.0", "0.14.1"),
    "ipex": ("0.14.0", "0.15.1"),
    "petit_nvfp4": ("0.14.0", "0.19.1"),
    "ptpc_fp8": ("0.14.0", "0.18.1"),
    "rtn": ("0.14.0", "0.14.1"),
}
"""The same for methods that a release has and refuses unless a flag allows them."""


def has(method: str, version: Version) -> bool | None:
    """Whether this release has the method; None where the releases around it differ."""
    return _in(METHODS, method, version)


def is_removed(method: str, version: Version) -> bool:
    """Whether this release no longer has the method."""
    return method in METHODS and version > Version.of(METHODS[method][0]) and has(method, version) is False


def is_deprecated(method: str, version: Version) -> bool:
    """Whether this release wants a flag for the method."""
    return _in(DEPRECATED, method, version) is True


def _in(ranges: Ranges, method: str, version: Version) -> bool | None:
    if method not in ranges:
        return False
    answers = {is_within(sample, *ranges[method]) for sample in samples_around(version)}
    return answers.pop() if len(answers) == 1 else None


# What 0.33.0 makes of the checkpoint's method and of the one that is asked for (`config/model.py:1383-1486`)

LIKE_AWQ = ("awq", "awq_marlin", "auto_awq", "marlin")
LIKE_GPTQ = ("gptq", "gptq_marlin", "auto_gptq", "marlin")
SHORTHANDS = (
    "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "mxfp8", "mxfp4", "int8_per_channel_weight_only",
    "nvfp4_per_token",
)  # fmt: skip
"""Methods that quantise a plain checkpoint while it is loaded; `fp8` stands for the first of them there."""

FILES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("awq", "awq_marlin", "auto_awq"), ("quantize_config.json", "quant_config.json")),
    **dict.fromkeys(("gptq", "gptq_marlin", "auto_gptq", "moe_wna16"), ("quantize_config.json",)),
    **dict.fromkeys(
        ("modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed"),
        ("hf_quant_config.json",),
    ),
    "inc": ("quantization_config.json",),
}
"""Where a method looks for what config.json does not tell."""

ONLY_OF_CHECKPOINTS = ("compressed-tensors", "quark", "torchao", "fbgemm_fp8")
"""Methods that cannot begin without the description in config.json."""

BITS = "bits"
KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "auto_awq": (("w_bit", BITS), ("q_group_size", "group_size"), ("zero_point",)),
    "auto_gptq": ((BITS,), ("group_size",), ("desc_act",), ("sym",)),
    "moe_wna16": ((BITS,), ("group_size",)),
}
"""What the description of a checkpoint must have, each under one of several names."""
BITS_OF_AWQ = 4
BITS_OF_GPTQ = (4, 8)
ALGORITHMS_OF_MODELOPT = (
    "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4", "MXFP8", "MIXED_PRECISION",
)  # fmt: skip


class Quantised(NamedTuple):
    """How vLLM will read a checkpoint."""

    asked: str | None
    """What `--quantization` says, in small letters."""
    named: str | None
    """What the checkpoint names."""
    is_described: bool
    """Whether the checkpoint says anything of a quantisation."""
    method: str | None
    """What is taken; None for a plain checkpoint, and where the two differ."""

    @property
    def differs(self) -> bool:
        """Whether the checkpoint is another one than the option says."""
        return self.is_described and self.asked is not None and self.method is None

    @property
    def is_online(self) -> bool:
        """Whether a plain checkpoint is quantised while it is loaded."""
        return not self.is_described and (self.method in SHORTHANDS or self.method in ("fp8", "online"))


def quantised(config: Mapping[str, Any] | None, asked: str | None, model_type: str, version: Version) -> Quantised:
    """What vLLM takes of what a checkpoint says (None: nothing) and what is asked for.

    Which methods claim the checkpoints of others is known of the newest release alone.
    """
    option = asked.lower() if asked else None
    if config is None:
        return Quantised(option, None, False, option)
    named = named_by(config)
    if version < Version.of(CLAIMS_SINCE):
        agreed = named if option in (None, named) and named != "auto-round" else None
        return Quantised(option, named, True, agreed)
    claimed = _claimed(config, named, option, model_type)
    return Quantised(option, named, True, claimed or (named if option in (None, named) else None))


CLAIMS_SINCE = "0.33.0"


def named_by(config: Mapping[str, Any]) -> str | None:
    """The method that a checkpoint's quantisation config names, None where it names none."""
    producer, inner = config.get("producer"), config.get("quantization")
    if isinstance(inner, Mapping) and (
        (isinstance(producer, Mapping) and producer.get("name") == "modelopt") or "modelopt_quant_config" in inner
    ):
        algorithm = str(inner.get("quant_algo") or "").upper()
        if algorithm:
            return {"NVFP4": "modelopt_fp4", "MIXED_PRECISION": "modelopt_mixed"}.get(algorithm, "modelopt")
    method = config.get("quant_method")
    return str(method).lower().replace("compressed_tensors", "compressed-tensors") if method else None


def _claimed(config: Mapping[str, Any], named: str | None, asked: str | None, model_type: str) -> str | None:
    """The method that claims a checkpoint, whatever name it bears."""
    if asked == "humming":
        return "humming"
    if named == "gptq" and asked in (None, *LIKE_GPTQ):
        return "auto_gptq"
    if named == "awq" and asked in (None, *LIKE_AWQ):
        return "auto_awq"
    if named == "auto-round":
        return "inc"
    if named in ("gptq", "awq") and asked == "moe_wna16":
        return asked if _has_widths_of_experts(config, named) else None
    if named is not None and named.startswith("modelopt"):
        return _of_modelopt(config)
    if named in ("mxfp4", "gpt_oss_mxfp4") and model_type == "gpt_oss":
        return "gpt_oss_mxfp4"
    if named in ("fp8", "deepseek_v4_fp8") and (model_type.startswith("deepseek_v4") or asked == "deepseek_v4_fp8"):
        return "deepseek_v4_fp8"
    return None


def _has_widths_of_experts(config: Mapping[str, Any], named: str) -> bool:
    bits = config.get("bits")
    return bits in (4, 8) and not is_ordered_by_activation(config) if named == "gptq" else bits == 4


def is_ordered_by_activation(config: Mapping[str, Any]) -> bool:
    """Whether a checkpoint of GPTQ has its columns in the order of the activations, in groups."""
    return bool(config.get("desc_act")) and config.get("group_size") != -1


def modelopt_algorithm(config: Mapping[str, Any]) -> str:
    """The algorithm by which ModelOpt quantised a checkpoint, empty where its description has none."""
    inner = config.get("quantization")
    return str((inner if isinstance(inner, Mapping) else config).get("quant_algo") or "").upper()


def _of_modelopt(config: Mapping[str, Any]) -> str | None:
    algorithm = modelopt_algorithm(config)
    if algorithm == "FP8":
        return "modelopt"
    if algorithm == "MIXED_PRECISION":
        return "modelopt_mixed"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return "modelopt_mxfp8" if "MXFP8" in algorithm else None


# What the methods of 0.33.0 ask of the model's type and of the card

HALVES = ("bfloat16", "float16")
ALL_TYPES = (*HALVES, "float32")
_BFLOAT16 = ("bfloat16",)

_TYPES: Mapping[str, tuple[str, ...]] = {
    "compressed-tensors": ALL_TYPES,
    "torchao": ALL_TYPES,
    **dict.fromkeys(("fp_quant", "mxfp4", "gpt_oss_mxfp4", "modelopt_mxfp8", "mxfp8"), _BFLOAT16),
}
_LEAST_CAPABILITY: Mapping[str, int] = {
    "compressed-tensors": 70,
    "quark": 70,
    "moe_wna16": 70,
    "auto_gptq": 60,
    "gptq": 60,
    "gptq_marlin": 60,
    "inc": 60,
    **dict.fromkeys(
        ("experts_int8", "modelopt", "modelopt_mxfp8", "mxfp8", "fbgemm_fp8", "mxfp4", "gpt_oss_mxfp4"), 80
    ),
    "fp_quant": 100,
}
_USUAL_CAPABILITY = 75


def types_of(read: Quantised) -> tuple[str, ...]:
    """The types of activations that the method of a checkpoint works with."""
    return HALVES if read.is_online else _TYPES.get(read.method or "", HALVES if read.method else ALL_TYPES)


def least_capability(read: Quantised) -> int:
    """The compute capability that the method wants, 75 for 7.5; 0 for a plain checkpoint."""
    if read.method is None:
        return 0
    return _USUAL_CAPABILITY if read.is_online else _LEAST_CAPABILITY.get(read.method, _USUAL_CAPABILITY)
