"""The keys of a file that `--config FILE` names, as vLLM 0.33.0's parser turns them into words.

What each case expects was read off that parser (`vllm/utils/argparse_utils.py`), run on the same file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from engine_commands import server

from shardlint import engines
from shardlint.deployment import ConfigEntry, Deployment
from shardlint.findings import Located, Span, Unknown

MODULE = "python3 -m vllm.entrypoints.openai.api_server"


def read(command: str, keys: Mapping[str, Any], **more: Any) -> Deployment:
    """The command, with a file that holds the keys, one on each line."""

    def entries(named: Located[str]) -> tuple[ConfigEntry, ...]:
        assert named.value == "c.yaml"
        return tuple(
            ConfigEntry(
                Located(key, Span("c.yaml", line, 1, line, 2)), Located(value, Span("c.yaml", line, 9, line, 10))
            )
            for line, (key, value) in enumerate(keys.items(), 1)
        )

    return engines.read(server(command, **more), flags_in=entries)


def value(found: Deployment, knob: str) -> object:
    located = found.knobs.get(knob)
    return located.value if isinstance(located, Located) else located


@pytest.mark.parametrize(
    ("key", "written", "knob", "meant"),
    [
        ("tensor-parallel-size", 8, "tensor_parallel_size", 8),
        ("tensor_parallel_size", 8, "tensor_parallel_size", 8),
        ("max-model-len", "32k", "max_model_len", 32000),
        ("gpu_memory_utilization", 0.90, "gpu_memory_utilization", 0.9),
        ("enable-expert-parallel", True, "enable_expert_parallel", True),
        ("no-enable-expert-parallel", True, "enable_expert_parallel", False),
        ("quantization", None, "quantization", None),
        ("eplb-config", {"num_redundant_experts": 16}, "num_redundant_experts", 16),
        ("eplb-config.num_redundant_experts", 16, "num_redundant_experts", 16),
    ],
)
def test_a_key_is_the_flag_of_its_name(key: str, written: object, knob: str, meant: object) -> None:
    found = read("vllm serve m --config c.yaml", {key: written})
    assert value(found, knob) == meant
    assert found.flag_problems == () and found.open_words == ()


def test_a_value_stands_in_its_file_and_is_spelled_as_there() -> None:
    size = read("vllm serve m --config c.yaml", {"port": 80, "tensor-parallel-size": 8}).knobs["tensor_parallel_size"]
    assert isinstance(size, Located)
    assert (size.span, size.spelled) == (Span("c.yaml", 2, 9, 2, 10), "tensor-parallel-size: 8")


def test_a_list_gives_a_word_for_each_entry_and_an_empty_one_none() -> None:
    found = read("vllm serve m --config c.yaml", {"served-model-name": ["a", 1.5, True], "lora-modules": []})
    names = found.engine_fields["served-model-name"]
    assert isinstance(names, Located) and names.value == ["a", "1.5", "True"]
    assert "lora-modules" not in found.engine_fields


@pytest.mark.parametrize(
    ("command", "meant"),
    [("vllm serve m", None), ("python3 -m vllm.entrypoints.cli.main serve m", None), (f"{MODULE} --model m", False)],
)
def test_false_switches_off_only_where_the_parser_that_reads_the_file_has_the_flag(command: str, meant: object) -> None:
    assert (
        value(read(f"{command} --config c.yaml", {"enable-expert-parallel": False}), "enable_expert_parallel") is meant
    )


def test_false_for_what_cannot_be_switched_off_is_nothing() -> None:
    found = read(f"{MODULE} --config c.yaml", {"model": "m", "api-key": False, "enable_expert_parallel": False})
    assert found.flag_problems == () and not found.knobs


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve m --config c.yaml -tp 2",
        "vllm serve m -tp 2 --config c.yaml",
        "vllm serve --config c.yaml -tp 2",
        f"{MODULE} -tp 2 --config c.yaml",
    ],
)
def test_the_command_line_wins(command: str) -> None:
    found = read(command, {"model": "n", "tensor-parallel-size": 8})
    assert value(found, "tensor_parallel_size") == 2
    assert found.flag_problems == ()


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("vllm serve A --config c.yaml", "A"),
        ("vllm serve --model A --config c.yaml", "A"),
        ("vllm serve -tp 2 A --config c.yaml", "A"),
        ("vllm serve -tp 2 --config c.yaml", "B"),
        (f"{MODULE} --config c.yaml", "B"),
        (f"{MODULE} --model A --config c.yaml", "A"),
    ],
)
def test_the_model_is_the_command_lines_else_the_files(command: str, meant: str) -> None:
    found = read(command, {"model": "B"})
    assert isinstance(found.model, Located) and found.model.value == meant
    assert found.flag_problems == ()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("vllm serve m --config", "No config file specified!"),
        ("vllm serve m --config c.json", "Config file must be of a yaml/yml type. json supplied"),
        ("vllm serve m --config c.yaml --config d.yaml", "More than one config file specified!"),
        ("vllm serve --config c.yaml", "No model specified!"),
    ],
)
def test_what_the_engine_refuses_is_said_in_its_words(command: str, message: str) -> None:
    (problem,) = read(command, {"port": 80}).flag_problems
    assert problem.message.startswith(message) and not problem.ignored


def test_a_key_that_is_no_flag_is_refused_where_it_stands() -> None:
    (problem,) = read("vllm serve m --config c.yaml", {"tensor-paralel-size": 8}).flag_problems
    assert problem.message == "unrecognized arguments: --tensor-paralel-size 8"
    assert isinstance(problem.at, Located) and problem.at.span == Span("c.yaml", 1, 1, 1, 2)


def test_an_equals_sign_names_no_file() -> None:
    found = read("vllm serve m --config=c.yaml", {"tensor-parallel-size": 8})
    (problem,) = found.flag_problems
    assert problem.ignored and isinstance(problem.at, Located)
    assert problem.at.span is not None and problem.at.span.column == 23
    assert not found.knobs and not found.open_words


def test_a_value_that_is_not_known_makes_its_knob_unknown_and_no_other() -> None:
    def entries(named: Located[str]) -> tuple[ConfigEntry, ...]:
        return (
            ConfigEntry(Located("tensor-parallel-size"), Unknown("templated", None, "{{ tp }}")),
            ConfigEntry(Located("max-model-len"), Located(8192)),
        )

    found = engines.read(server("vllm serve m --config c.yaml"), flags_in=entries)
    assert isinstance(found.knobs["tensor_parallel_size"], Unknown)
    assert value(found, "max_model_len") == 8192 and not found.open_words


@pytest.mark.parametrize("command", ["vllm serve m --config $FILE", "vllm serve m --config gone.yaml"])
def test_a_file_that_is_not_there_leaves_the_rest_open(command: str) -> None:
    found = engines.read(server(command), flags_in=lambda named: Unknown("it is not there"))
    (word,) = found.open_words
    assert word.span is not None and word.span.column == 23
    assert "is not " in word.reason


def test_sglang_reads_its_files_in_the_same_way() -> None:
    command = "python3 -m sglang.launch_server --config c.yaml --tp 2"
    found = read(command, {"model-path": "m", "tp-size": 8, "context-length": "9600"}, engine="sglang")
    assert isinstance(found.model, Located) and found.model.value == "m"
    assert (value(found, "tensor_parallel_size"), value(found, "max_model_len")) == (2, 9600)


@pytest.mark.parametrize(
    "flag", ["--extra_llm_api_options c.yaml", "--extra-llm-api-options=c.yaml", "--config c.yaml", "--config=c.yaml"]
)
def test_tensorrt_llm_takes_its_file_in_every_spelling(flag: str) -> None:
    keys = {"tensor_parallel_size": 8, "moe_expert_parallel_size": 4, "kv_cache_config": {"dtype": "fp8"}}
    found = read(f"trtllm-serve org/model {flag} --port 8000", keys, engine="trtllm")
    assert (found.engine, value(found, "tensor_parallel_size"), value(found, "expert_parallel_size")) == (
        "trtllm",
        8,
        4,
    )
    assert isinstance(found.model, Located) and found.model.value == "org/model"


def test_a_file_of_tensorrt_llm_that_is_not_here_leaves_its_flags_open() -> None:
    found = engines.read(server("trtllm-serve org/model --extra_llm_api_options=/config/x.yaml", engine="trtllm"))
    assert found.open_words and "/config/x.yaml" in found.open_words[0].reason
