"""Options of DJL Serving and its LMI containers, from `serving.properties` or `OPTION_*`, as an engine's command."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Options

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _stated

DJL = ("djl-serving",)
TRTLLM = ("trtllm-serve",)
FLAGS = {
    "tensor_parallel_degree": "tensor-parallel-size",
    "pipeline_parallel_degree": "pipeline-parallel-size",
    "quantize": "quantization",
    "max_rolling_batch_size": "max-num-seqs",
    "max_rolling_batch_prefill_tokens": "max-num-batched-tokens",
}
"""LMI's own names for what the engine has a flag for."""
OF_VLLM = frozenset(
    {
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel",
        "max_model_len", "gpu_memory_utilization", "kv_cache_dtype", "quantization", "max_num_seqs",
        "max_num_batched_tokens", "enforce_eager", "enable_prefix_caching", "enable_chunked_prefill",
        "decode_context_parallel_size", "prefill_context_parallel_size", "load_format", "swap_space",
    }
)  # fmt: skip
"""vLLM's own names, which are handed on."""
SHARED = frozenset({"dtype", "max_model_len", "quantization"})
"""Names that the table of engines which are only read has as well."""
_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_PREFIX = "OPTION_"
_WITHOUT_PREFIX = {"HF_MODEL_ID": "model_id", "TENSOR_PARALLEL_DEGREE": "tensor_parallel_degree"}


def options_of(env: Options[str, Maybe[str]]) -> dict[str, Maybe[str]]:
    """The options that variables of a container set (`OPTION_MAX_MODEL_LEN`)."""
    found: dict[str, Maybe[str]] = {}
    for name, value in env.items():
        if name.startswith(_PREFIX) or name in _WITHOUT_PREFIX:
            found[_WITHOUT_PREFIX.get(name) or name.removeprefix(_PREFIX).lower()] = value
    return found


def launch_of(options: Options[str, Maybe[str]], base: Launch) -> Launch:
    """What DJL Serving starts by its options, their names in lower case and without a prefix."""
    command = _command(options)
    model = _model(options, base)
    takes_model = command != DJL
    settings = list(_settings(options, command))
    if not takes_model:
        settings.append(ConfigEntry(Located("model-id", model.span, "model_id", "derived"), model))
    argv = _stated.command(command, base.at, model if takes_model else None)
    return base._replace(argv=argv, settings=tuple(settings))


def _command(options: Options[str, Maybe[str]]) -> tuple[str, ...]:
    """By the backend that is asked for, else by options that only vLLM has."""
    asked = " ".join(_text(options, name).lower() for name in ("rolling_batch", "entrypoint", "engine"))
    if "vllm" in asked:
        return _stated.VLLM
    if "trtllm" in asked or "tensorrt_llm" in asked:
        return TRTLLM
    named = any(backend in asked for backend in ("lmi-dist", "deepspeed", "scheduler", "neuronx", "huggingface"))
    return _stated.VLLM if not named and not OF_VLLM.isdisjoint(options) else DJL


def _text(options: Options[str, Maybe[str]], name: str) -> str:
    value = options.get(name)
    return value.value if isinstance(value, Located) else ""


def _model(options: Options[str, Maybe[str]], base: Launch) -> Maybe[str]:
    model = options.get("model_id") or options.get("model") or options.get("s3url")
    return model or Unknown("no model_id is set: the model comes with the file", base.at, settle_by="option.model_id")


def _settings(options: Options[str, Maybe[str]], command: tuple[str, ...]) -> Iterator[ConfigEntry]:
    names = SHARED if command == DJL else OF_VLLM | SHARED
    for name, value in options.items():
        flag = FLAGS.get(name) or (name if name in names else None)
        if flag is not None:
            yield ConfigEntry(Located(flag, value.span, name, "derived"), _value(name, value))


def _value(name: str, value: Maybe[str]) -> Located[object] | Unknown:
    if isinstance(value, Unknown):
        return value
    text = value.value.strip()
    if name == "tensor_parallel_degree" and text == "max":
        return Unknown("max stands for all GPUs of the machine", value.span, value.spelled, "writing their number")
    return Located(_DTYPES[text], value.span, value.spelled) if name == "dtype" and text in _DTYPES else plain(value)


def plain(value: Maybe[str]) -> Located[object] | Unknown:
    """A text as the argument that is made of it: the words for yes and no are a switch."""
    if isinstance(value, Unknown):
        return value
    text = value.value.strip()
    is_switch = text.lower() in ("true", "false")
    return Located(text.lower() == "true" if is_switch else text, value.span, value.spelled)
