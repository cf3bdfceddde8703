"""A rule speaks from the very release on that refuses, and not one release earlier."""

from __future__ import annotations

from typing import Any

import pytest

from shardlint import check_command

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
MIXTRAL = LLAMA | {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8}
MIXTRAL |= {"num_experts_per_tok": 2}
LLAMA_4 = LLAMA | {"architectures": ["Llama4ForConditionalGeneration"]}


@pytest.mark.parametrize(
    ("rule", "config", "command", "last_without", "first"),
    [
        ("gone-variable", LLAMA, "VLLM_ATTENTION_BACKEND=FLASHINFER", "0.14.1", "0.15.0"),
        ("gone-variable", LLAMA, "VLLM_USE_V1=0", "0.11.0", "0.11.1"),
        ("data-parallel-launch", LLAMA, "-dp 2 --headless --api-server-count 1 -dpl 1", "0.14.1", "0.15.0"),
        ("data-parallel-launch", LLAMA, "-dp 2 --data-parallel-hybrid-lb", "0.9.2", "0.10.0"),
        ("expert-options", MIXTRAL, "-tp 2 --enable-eplb", "0.9.2", "0.10.0"),
        ("executor-options", LLAMA, "-pp 2 --async-scheduling", "0.9.2", "0.10.0"),
        ("impossible-size", LLAMA, "--max-model-len -2", "0.13.0", "0.14.0"),
    ],
)
def test_the_first_release(rule: str, config: dict[str, Any], command: str, last_without: str, first: str) -> None:
    assert rule not in rules(config, command, last_without)
    assert rule in rules(config, command, first)


def test_llama_4_has_pipeline_parallelism_since_0_8_4() -> None:
    assert "pipeline-support" in rules(LLAMA_4, "-tp 8 -pp 2", "0.8.3")
    assert "pipeline-support" not in rules(LLAMA_4, "-tp 8 -pp 2", "0.8.4")


def rules(config: dict[str, Any], command: str, release: str) -> set[str]:
    """The names of the rules that find something in a command, or in one variable of its environment."""
    name, equals, value = command.partition("=")
    env = {name: value} if equals and name.isupper() else {}
    words = "vllm serve model" if env else f"vllm serve model {command}"
    report = check_command(words, config=config, env=env, engine_version=release, gpus_per_node=8, nodes=2)
    return {finding.rule for finding in report.findings}
