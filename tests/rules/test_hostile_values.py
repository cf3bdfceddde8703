"""No value that a manifest or a config may hold makes a rule raise, and no finding has an empty place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint import check_command, lay_out

ODD_SIZE = st.sampled_from([-3, -1, 0, 1, 2, 3, 7, 8, 64, 1000, 10**9, 10**30])
ODD_COUNT = st.one_of(ODD_SIZE, st.none(), st.sampled_from(["8", [8], True, 8.5]))
FLAGS = (
    *("-tp", "-pp", "-dp", "-pcp", "-dcp", "--nnodes", "--node-rank", "--api-server-count", "--ubatch-size"),
    *("--data-parallel-size-local", "--data-parallel-rank", "--data-parallel-start-rank", "--max-model-len"),
    *("--cp-kv-cache-interleave-size", "--block-size", "--max-num-seqs", "--eplb-config.num_redundant_experts"),
)
SWITCHES = (
    "--enable-expert-parallel",
    "--distributed-executor-backend ray",
    "--distributed-executor-backend mp",
    "--data-parallel-backend ray",
    "--gpu-memory-utilization 0",
    "--distributed-executor-backend uni",
    "--dtype float8",
    "--headless",
    "--data-parallel-hybrid-lb",
    "--data-parallel-external-lb",
    "--data-parallel-multi-port-external-lb",
    "--enable-eplb",
    "--enable-dbo",
    "--eplb-config []",
    "--kv-transfer-config {}",
    """--kv-transfer-config '{"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [1]}}'""",
    "--quantization awq",
    "$EXTRA",
)
KEYS = (
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "vocab_size",
    "num_experts",
    "head_dim",
    "max_position_embeddings",
)
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


@settings(max_examples=150, deadline=None)
@given(
    flags=st.dictionaries(st.sampled_from(FLAGS), ODD_SIZE),
    switches=st.sets(st.sampled_from(SWITCHES)),
    config=st.dictionaries(st.sampled_from(KEYS), ODD_COUNT),
    partition=st.one_of(st.none(), st.text("0123456789,-a ", max_size=12)),
    gpus=st.sampled_from([None, 0, 1, 8, 10**6]),
    nodes=st.sampled_from([1, 2, 16]),
    gpu=st.sampled_from([None, "L4", "H100", "GB10", "nothing of the kind"]),
)
def test_no_rule_raises(
    flags: dict[str, int],
    switches: set[str],
    config: dict[str, Any],
    partition: str | None,
    gpus: int | None,
    nodes: int,
    gpu: str | None,
) -> None:
    words = ["vllm serve model", *(f"{flag}={size}" for flag, size in flags.items()), *sorted(switches)]
    report = check_command(
        " ".join(words),
        config={**LLAMA, **config},
        env={} if partition is None else {"VLLM_PP_LAYER_PARTITION": partition},
        gpus_per_node=gpus,
        nodes=nodes,
        gpu=gpu,
    )
    for finding in report.findings:
        assert finding.message
        assert finding.span.end_column > finding.span.column or finding.span.end_line > finding.span.line


ODD_TEXT = (
    "0",
    "-1",
    "1_0",
    "08",
    "8.0",
    "\u00b2",
    "\u0668",
    "9" * 5000,
    "1e9",
    "nan",
    "",
    "null",
    "[8]",
    "{}",
    "8x",
    "\\",
)


@pytest.mark.parametrize("flag", (*FLAGS, "--tensor-parallel-size.x", "--max-model-len", "--num-redundant-experts"))
@pytest.mark.parametrize("text", ODD_TEXT)
def test_no_text_of_a_size_makes_a_rule_raise(flag: str, text: str) -> None:
    for words in (["vllm", "serve", "model", flag, text], ["vllm", "serve", "model", f"{flag}={text}"]):
        check_command(words, config=LLAMA, gpus_per_node=8)
        lay_out(words, config=LLAMA, gpus_per_node=8, nodes=2)


def test_every_degree_has_advice_for_too_few_gpus() -> None:
    for flag in ("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size"):
        report = check_command(f"vllm serve model --{flag} 16", config=LLAMA, gpus_per_node=8)
        (finding,) = [finding for finding in report.findings if finding.rule == "world-size"]
        assert finding.help[0] == f"--{flag} 8"


def test_a_slip_of_the_keyboard_in_the_gpus_is_no_long_search() -> None:
    report = check_command("vllm serve model -dp 10000000000000", config=LLAMA, gpus_per_node=10**12)
    assert "world-size" in {finding.rule for finding in report.findings}


def test_an_engine_that_is_not_judged_has_no_layout_and_says_so() -> None:
    layout = lay_out("python -m sglang.launch_server --model m --tp 3", config=LLAMA)
    assert (layout.ranks, layout.unknown) == ((), "layouts of SGLang are not judged")


@pytest.mark.parametrize("numbers", [{"nodes": 0}, {"nodes": -1}, {"nodes": 10**9}, {"gpus_per_node": -1}])
def test_numbers_of_gpus_that_nobody_has_are_refused_by_name(numbers: dict[str, int]) -> None:
    for call in (check_command, lay_out):
        with pytest.raises(ValueError, match=f"^{next(iter(numbers))} is "):
            call("vllm serve model", config=LLAMA, **{"gpus_per_node": 8, **numbers})
