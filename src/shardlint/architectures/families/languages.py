"""The language model behind a tower, where the config's own model type says which one that is."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.families import classics, dense, experts, hybrid, mla
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import Rows

BY_MODEL_TYPE: Mapping[str, Family] = {
    "deepseek_v2": mla.deepseek,
    "deepseek_v3": mla.deepseek,
    "gemma": dense.gemma,
    "gemma2": dense.gemma2,
    "gpt_oss": experts.gpt_oss,
    "internlm2": classics.internlm2,
    "lfm2": hybrid.lfm2,
    "llama": dense.llama,
    "mistral": dense.llama,
    "phi3": dense.phi3,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "qwen3_moe": experts.qwen3_moe,
}


def language(model: Model) -> Rows:
    """The language model, which the text config's type names."""
    kind = model.geometry.text_model_type
    if kind not in BY_MODEL_TYPE:
        raise Missing(f"a tower before a model of the type {kind or 'that nothing names'} is not described")
    return BY_MODEL_TYPE[kind](model)
