"""Conditions ask one thing after the other: what is not told is said only where the answer would have mattered."""

from __future__ import annotations

from typing import Any

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


def missed(command: str, rule: str, config: dict[str, Any] | None = None, **more: Any) -> list[tuple[str, str]]:
    report = check_command(f"vllm serve model {command}", config=config or LLAMA, **more)
    return [(item.missing, item.reason) for item in report.not_checked if item.rule == rule]


def refused(command: str, rule: str, **more: Any) -> list[str]:
    report = check_command(f"vllm serve model {command}", config=LLAMA, **more)
    return [finding.message for finding in report.findings if finding.rule == rule]


def test_what_nobody_asked_for_is_not_missed() -> None:
    assert missed("-tp $TP", "decode-context-parallel") == []
    assert [name for name, _ in missed("-tp $TP -dcp 2", "decode-context-parallel")] == ["tensor_parallel_size"]


def test_one_open_word_is_missed_once() -> None:
    ((_, reason),) = missed("$EXTRA_ARGS", "data-parallel-launch")
    assert reason.endswith("may stand in $EXTRA_ARGS, which the file does not tell")


def test_all_that_fails_is_said_at_once() -> None:
    assert (
        len(refused("-dp 2 --data-parallel-external-lb --headless --api-server-count 2", "data-parallel-launch")) == 3
    )


def test_a_variable_that_stands_in_for_a_flag_is_not_the_flag() -> None:
    assert refused("--data-parallel-rank 0", "data-parallel-launch")
    assert refused("", "data-parallel-launch", env={"VLLM_DP_RANK": "0"}) == []


def test_a_command_without_a_release_is_judged_by_the_newest() -> None:
    (message,) = refused("--swap-space 4", "refused-flag")
    assert message.startswith("vLLM 0.33.0 refuses this command line")
    assert refused("--swap-space 4", "refused-flag", engine_version="0.10.2") == []
