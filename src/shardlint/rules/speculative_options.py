"""Options of speculative decoding that contradict each other, the model or its layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.facts import Geometry
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged

LOOKS_UP = ("ngram", "[ngram]", "ngram_gpu")
WITHOUT_MODEL = (*LOOKS_UP, "suffix", "extract_hidden_states", "custom_class", "dspark")
COUNTS_BY_ITSELF = ("suffix", "dspark")
"""Methods that know how many tokens to propose."""

SHORT_FLAGS = {"method": "spec_method", "model": "spec_model", "num_speculative_tokens": "spec_tokens"}

SIGNS_OF_MTP = ("mtp", "nextn", "n_predict")
"""Parts of the keys under which a config describes layers that predict further tokens."""
WITHOUT_MTP = (
    "bloom", "chatglm", "cohere", "cohere2", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "glm4", "gpt2",
    "gpt_oss", "granite", "internlm2", "jamba", "llama", "llama4", "mistral", "mistral3", "mixtral", "olmo2", "olmo3",
    "phi", "phi3", "phimoe", "qwen2", "qwen2_5_vl", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_moe", "qwen3_vl",
    "qwen3_vl_moe", "starcoder2",
)  # fmt: skip
"""Model types that never had such layers."""


def _key(told: Told, key: str) -> Any:
    """A key of --speculative-config, or the short flag that stands for it."""
    written = told.part("speculative_config", key)
    return getattr(told, SHORT_FLAGS[key]) if written is None and key in SHORT_FLAGS else written


def _count(told: Told, key: str = "num_speculative_tokens") -> int | None:
    """A whole number under a key; what is none is the parser's to refuse."""
    number = _key(told, key)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _method(told: Told) -> str:
    """The method as written, else what the model's name makes it."""
    method = _key(told, "method")
    if method is None:
        model = _key(told, "model")
        return "ngram" if model in LOOKS_UP else "custom_class" if _is_class(model) else "draft_model"
    return "mtp" if str(method).endswith("_mtp") else str(method)


def _is_class(model: Any) -> bool:
    parts = model.split(".") if isinstance(model, str) and "/" not in model else []
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _is_asked(told: Told) -> bool:
    return any(_key(told, key) is not None for key in SHORT_FLAGS) or told.speculative_config == {}


def _has_draft(told: Told) -> bool:
    return _is_asked(told) and (_method(told) == "mtp" or _key(told, "model") is not None) and not _needs_none(told)


def _needs_none(told: Told) -> bool:
    return _method(told) in WITHOUT_MODEL


def _twice(told: Told) -> list[str]:
    return [
        key
        for key, flag in SHORT_FLAGS.items()
        if getattr(told, flag) is not None and told.part("speculative_config", key) is not None
    ]


def _lacks_mtp(geometry: Geometry) -> bool:
    """Whether it is certain that the model brings no layers for token prediction."""
    keys = (str(key).lower() for part in (geometry.raw, geometry.text) for key in part)
    return geometry.model_type in WITHOUT_MTP and not any(sign in key for key in keys for sign in SIGNS_OF_MTP)


AT = ("speculative_config", "spec_tokens", "spec_method", "spec_model")

CONDITIONS = (
    Condition(
        ("spec_method", "spec_model", "spec_tokens", "speculative_config"),
        lambda t: bool(_twice(t)),
        lambda t: f"{' and '.join(_twice(t))} of the draft stand in --speculative-config and in flags of their own",
        help=lambda t: ("say each once",),
        since="0.33.0",
    ),
    Condition(
        AT,
        lambda t: t.part("speculative_config", "tensor_parallel_size") is not None,
        lambda t: "the draft's tensor parallel size is called draft_tensor_parallel_size",
        help=lambda t: (f'"draft_tensor_parallel_size": {t.part("speculative_config", "tensor_parallel_size")}',),
        since="0.9.2",
    ),
    Condition(
        AT,
        lambda t: (
            _is_asked(t)
            and _key(t, "num_speculative_tokens") is None
            and (_method(t) in LOOKS_UP or _key(t, "method") == _key(t, "model") is None)
        ),
        lambda t: "it is not said how many tokens are to be proposed at a time",
        help=lambda t: ('"num_speculative_tokens": 3',),
        since="0.9.0",
    ),
    Condition(
        AT,
        lambda t: _count(t) is not None and (_count(t) or 0) <= 0,
        lambda t: f"{_count(t)} tokens are to be proposed at a time",
        help=lambda t: ('"num_speculative_tokens": 3',),
        since="0.9.0",
    ),
    Condition(
        AT,
        lambda t: (_count(t) or 0) > 0 and _key(t, "model") is None and _method(t) != "mtp" and not _needs_none(t),
        lambda t: f"the method {_method(t)} needs a model, and none is named",
        help=lambda t: ('"model": "ORG/DRAFT"', '"method": "ngram" needs none'),
        since="0.9.2",
    ),
    Condition(
        AT,
        lambda t: (
            _method(t) in LOOKS_UP and (_count(t, "prompt_lookup_min") or 0) > (_count(t, "prompt_lookup_max") or 10**9)
        ),
        lambda t: (
            f"the shortest n-gram to look up has {_key(t, 'prompt_lookup_min')} tokens and the longest "
            f"{_key(t, 'prompt_lookup_max')}"
        ),
        sum=lambda t: f"{_key(t, 'prompt_lookup_min')} > {_key(t, 'prompt_lookup_max')}",
        since="0.9.0",
    ),
    Condition(
        (*AT, "tensor_parallel_size"),
        lambda t: (
            _has_draft(t)
            and _count(t, "draft_tensor_parallel_size") is not None
            and _count(t, "draft_tensor_parallel_size") not in (1, t.tensor_parallel_size)
        ),
        lambda t: (
            f"the draft is to have {_count(t, 'draft_tensor_parallel_size')} tensor parallel ranks, and it may have 1 "
            f"or the {t.tensor_parallel_size} of the model"
        ),
        help=lambda t: ('"draft_tensor_parallel_size": 1', f'"draft_tensor_parallel_size": {t.tensor_parallel_size}'),
    ),
    Condition(
        AT,
        lambda t: (
            _is_asked(t) and _method(t) == "mtp" and _key(t, "model") is None and (_count(t) or 0) > 0 and t.lacks_mtp
        ),
        lambda t: f"the model, of type {t.model_type}, has no layers for token prediction, and the method is mtp",
        help=lambda t: ('"method": "ngram"', '"method": "eagle3" with a "model" that was made for it'),
        since="0.33.0",
    ),
    Condition(
        AT,
        lambda t: (
            _is_asked(t)
            and _method(t) == "mtp"
            and _key(t, "model") is None
            and (t.layers or 0) > 1
            and (_count(t) or 0) > t.layers
            and (_count(t) or 0) % t.layers != 0
        ),
        lambda t: (
            f"{_count(t)} tokens are to be proposed at a time by {t.layers} layers, which have to be used equally often"
        ),
        sum=lambda t: f"{_count(t)} % {t.layers} = {(_count(t) or 0) % t.layers}",
        help=lambda t: (f'"num_speculative_tokens": {t.layers}',),
        since="0.11.0",
    ),
    Condition(
        AT,
        lambda t: (
            _key(t, "rejection_sample_method") == "synthetic"
            and (_key(t, "synthetic_acceptance_rates") is None) == (_key(t, "synthetic_acceptance_length") is None)
        ),
        lambda t: "synthetic rejection needs either synthetic_acceptance_rates or synthetic_acceptance_length",
        since="0.33.0",
    ),
    Condition(
        ("max_num_batched_tokens", "max_num_seqs", *AT),
        lambda t: (
            bool(t.enable_lora)
            and (_count(t) or 0) > 0
            and t.max_num_batched_tokens is not None
            and t.max_num_seqs is not None
            and 0 < t.max_num_batched_tokens < t.max_num_seqs * ((_count(t) or 0) + 1)
        ),
        lambda t: (
            f"with adapters a batch has to hold the {(_count(t) or 0) + 1} tokens of each of {t.max_num_seqs} "
            f"sequences, and it holds {t.max_num_batched_tokens}"
        ),
        sum=lambda t: f"{t.max_num_batched_tokens} < {t.max_num_seqs} x ({_count(t)} + 1)",
        help=lambda t: (f"--max-num-batched-tokens {t.max_num_seqs * ((_count(t) or 0) + 1)}",),
        since="0.10.2",
    ),
)

OF_DEEPSEEK = ("deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe", "mimo", "kimi_k2")
"""Model types that say under one name how many layers of token prediction they have."""


def judge(
    told: Told, geometry: Geometry, engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem | Undecided]:
    if not _is_asked(told):
        return
    layers = geometry.raw.get("num_nextn_predict_layers") if geometry.model_type in OF_DEEPSEEK else None
    known = told.also(
        lacks_mtp=Located(_lacks_mtp(geometry) and not geometry.assumption and told.hf_overrides is None),
        layers=Located(layers if isinstance(layers, int) else None),
        model_type=Located(geometry.model_type),
    )
    yield from judged(CONDITIONS, known, engine, engine_version)


RULE = Rule("SL909", "speculative-options", "spec-decode", "error", "refuses-at-start", judge)
