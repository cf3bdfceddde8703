"""The first advice of a refused layout is one that no rule refuses."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from shardlint import check_command
from shardlint.check.suggesting import OF_THE_LAYOUT
from shardlint.findings import Finding

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
ODD_VOCABULARY = LLAMA | {"num_attention_heads": 40, "hidden_size": 5120, "vocab_size": 151936}
LARGE = LLAMA | {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
NO_STAGES = LLAMA | {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n"}


def refused(command: str, config: dict[str, Any], gpus: int, gpu: str = "H100") -> list[Finding]:
    report = check_command(command, config=config, gpus_per_node=gpus, gpu=gpu)
    return [each for each in report.findings if each.severity == "error" and each.family in OF_THE_LAYOUT]


@pytest.mark.parametrize(
    ("flags", "config", "gpus", "gpu", "wanted"),
    [
        ("--tensor-parallel-size 6", LLAMA, 8, "H100", "--tensor-parallel-size 8"),
        ("-tp 6", LLAMA, 6, "H100", "-tp 4"),
        ("-tp=5", ODD_VOCABULARY, 5, "H100", "-tp=4"),
        ("--tensor-parallel-size 3 --pipeline-parallel-size 2", LLAMA, 6, "H100", "--tensor-parallel-size 2"),
        ("-tp 1 -pp 2", LARGE, 8, "A100 40GB", "-tp 2"),
    ],
)
def test_the_nearest_layout_that_works_comes_first(
    flags: str, config: dict[str, Any], gpus: int, gpu: str, wanted: str
) -> None:
    findings = refused(f"vllm serve m {flags}", config, gpus, gpu)
    assert findings
    assert {finding.help[0] for finding in findings} == {wanted}
    assert all(len(finding.help) == len(set(finding.help)) for finding in findings)


@pytest.mark.parametrize("tensor", [3, 5, 6, 7, 12])
@pytest.mark.parametrize("pipeline", [1, 2, 3])
def test_what_is_advised_is_not_refused(tensor: int, pipeline: int) -> None:
    command = f"vllm serve m --tensor-parallel-size {tensor} --pipeline-parallel-size {pipeline}"
    for finding in refused(command, LLAMA, 8):
        sizes = " ".join(f"--{word}" for word in re.findall(r"(\w+-parallel-size \d+)", finding.help[0]))
        assert sizes, finding
        assert refused(shlex.join([*shlex.split(command), *shlex.split(sizes)]), LLAMA, 8) == []


def test_where_nothing_near_works_the_rule_s_own_advice_stays() -> None:
    (finding,) = refused("vllm serve m --tensor-parallel-size 2", LARGE, 2, "L4")
    assert not finding.help[0].startswith("--tensor-parallel-size 1")


def test_sizes_beyond_all_reason_cost_no_time() -> None:
    command = "vllm serve m --tensor-parallel-size 1000000007 --pipeline-parallel-size 1000000009"
    assert check_command(command, config=LLAMA).findings


@pytest.mark.parametrize("index", [{}, {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 128}])
def test_copies_of_a_cache_are_shared_by_context_only_where_the_class_can(index: dict[str, int]) -> None:
    config = {
        "architectures": ["Qwen4ExpForCausalLM"],
        "model_type": "qwen4_exp_text",
        "num_key_value_heads": 2,
        "indexer_compress_ratio": 4,
        **index,
    }
    report = check_command(["vllm", "serve", "m", "-tp", "4"], config=config)
    (copies,) = [finding for finding in report.findings if finding.code == "SL103"]
    assert ("--decode-context-parallel-size" in " ".join(map(str, copies.help))) == (not index)
