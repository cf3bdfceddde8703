"""Models for the tests, as the numbers of their configs."""

from __future__ import annotations

from typing import Any

from shardlint.engines.versions import Version
from shardlint.engines.vllm.cutting import cutting
from shardlint.facts import Geometry
from shardlint.facts.geometry import read

VLLM = cutting(Version((0, 33)))

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}
QWEN3_8B: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}
MIXTRAL: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}

GLM_5: dict[str, Any] = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "hidden_size": 1024,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 256,
    "first_k_dense_replace": 1,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}
"""Small; the sizes of its attention are those of its config class."""


def geometry(config: dict[str, Any], **changes: Any) -> Geometry:
    """The geometry of a config, some of its keys changed; a key that is None is left out."""
    changed = {key: value for key, value in (config | changes).items() if value is not None}
    return read(changed, "a/model", origin="a test")
