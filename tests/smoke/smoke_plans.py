"""Plans, and a manifest, for the tests of the smoke test."""

from __future__ import annotations

import json
from typing import Any

from shardlint.engines.versions import Version
from shardlint.engines.vllm.cutting import cutting
from shardlint.facts.geometry import read
from shardlint.findings import Unknown
from shardlint.layout import Sizes, lay_out
from shardlint.smoke import Plan, SmokeResult, plan_of
from shardlint.smoke.plan import Deviation

DENSE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 6,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
EXPERTS: dict[str, Any] = DENSE | {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
LATENT: dict[str, Any] = DENSE | {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def planned(config: dict[str, Any], **sizes: Any) -> Plan | Unknown:
    """What shardlint plans for a model under degrees given by their short names (tp, pp, dp, pcp, dcp, ep)."""
    names = {
        "tp": "tensor_parallel_size",
        "pp": "pipeline_parallel_size",
        "dp": "data_parallel_size",
        "pcp": "prefill_context_parallel_size",
        "dcp": "decode_context_parallel_size",
        "ep": "enable_expert_parallel",
    }
    geometry = read(config, "org/model")
    degrees = Sizes(**{names.get(name, name): size for name, size in sizes.items()})
    return plan_of(lay_out(degrees, geometry, cutting(Version((0, 33)))), geometry)


def plan(config: dict[str, Any], *deviations: Deviation, **sizes: Any) -> Plan:
    """The same where it is certain that there is a plan, some ranks made to deviate from it."""
    found = planned(config, **sizes)
    assert isinstance(found, Plan), found
    return found._replace(deviations=deviations)


def messages(result: SmokeResult, claim: str) -> dict[int, str]:
    """What each rank has against a claim."""
    return {judged.rank: judged.message for judged in result.claims if judged.name == claim and not judged.ok}


def deployment(name: str, gpus: int, *degrees: str) -> str:
    """The manifest of a server of `org/one` in one pod, its degrees as words of its command."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        command: {json.dumps(["vllm", "serve", "org/one", *degrees])}
        resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""
