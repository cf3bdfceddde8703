"""A server as a Deployment: model, knobs from flags and environment, what becomes an engine field."""

from __future__ import annotations

import pytest
from engine_commands import AT, deployment, server

from shardlint import engines
from shardlint.findings import Located, Unknown


def value(found: object) -> object:
    assert isinstance(found, Located)
    return found.value


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve Qwen/Qwen3-8B -tp 2",
        "vllm serve -tp 2 Qwen/Qwen3-8B",
        "vllm serve --model Qwen/Qwen3-8B -tp 2",
        "vllm serve --served-model-name a b --model=Qwen/Qwen3-8B -tp 2",
        "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B -tp 2",
    ],
)
def test_the_model_is_read_wherever_it_stands(command: str) -> None:
    found = deployment(command)
    assert value(found.model) == "Qwen/Qwen3-8B"
    assert not found.flag_problems


def test_a_model_written_twice_is_refused() -> None:
    found = deployment("vllm serve Qwen/Qwen3-8B --model Qwen/Qwen3-32B")
    assert value(found.model) == "Qwen/Qwen3-32B"
    assert [problem.message for problem in found.flag_problems] == ["unrecognized arguments: Qwen/Qwen3-8B"]


def test_the_old_entrypoint_takes_no_word_alone() -> None:
    found = deployment("python3 -m vllm.entrypoints.openai.api_server Qwen/Qwen3-8B")
    assert found.model is None
    assert [problem.message for problem in found.flag_problems] == ["unrecognized arguments: Qwen/Qwen3-8B"]


@pytest.mark.parametrize("name", ["__MODEL__", "<model-name>", "YOUR-MODEL-PATH", "YOUR_MODEL"])
def test_a_placeholder_is_no_model(name: str) -> None:
    assert isinstance(deployment(f"vllm serve {name}").model, Unknown)
    assert isinstance(deployment(f"vllm serve --model {name}").model, Unknown)


def test_an_empty_name_is_no_model() -> None:
    assert isinstance(deployment("vllm serve --model=").model, Unknown)


def test_what_is_no_knob_is_an_engine_field() -> None:
    found = deployment("vllm serve m --block-size 32 --tokenizer-mode slow --port 80 --api-key s --hf-token t -tp 2")
    assert {name: value(field) for name, field in found.engine_fields.items()} == {
        "block-size": 32,
        "tokenizer-mode": "slow",
    }
    assert set(found.knobs) == {"tensor_parallel_size"}


@pytest.mark.parametrize(
    "flags",
    [
        '--eplb-config {"num_redundant_experts":32}',
        "--eplb-config.num_redundant_experts 32",
        "--num-redundant-experts 32",
    ],
)
def test_redundant_experts_are_a_knob_wherever_they_are_written(flags: str) -> None:
    found = deployment(f"vllm serve m --enable-eplb {flags}")
    assert value(found.knobs["num_redundant_experts"]) == 32
    assert value(found.knobs["enable_eplb"]) is True


def test_a_draft_models_own_sizes_are_no_knobs_of_the_server() -> None:
    found = deployment('vllm serve m --speculative-config {"max_model_len":4096}')
    assert "max_model_len" not in found.knobs


def test_none_means_not_written() -> None:
    found = deployment("vllm serve m --quantization None --distributed-executor-backend=")
    assert not found.knobs


def test_the_stage_partition_comes_from_the_environment() -> None:
    found = deployment("vllm serve m -pp 2", env={"VLLM_PP_LAYER_PARTITION": "20,12"})
    partition = found.knobs["pp_layer_partition"]
    assert isinstance(partition, Located)
    assert (partition.value, partition.span, partition.spelled) == ("20,12", AT, "VLLM_PP_LAYER_PARTITION=20,12")


def test_a_flag_wins_over_the_environment() -> None:
    found = deployment("vllm serve m -dp 4", env={"VLLM_DP_SIZE": "2"})
    assert value(found.knobs["data_parallel_size"]) == 4
    assert value(deployment("vllm serve m", env={"VLLM_DP_SIZE": "2"}).knobs["data_parallel_size"]) == 2
    assert isinstance(deployment("vllm serve m", env={"VLLM_DP_SIZE": "two"}).knobs["data_parallel_size"], Unknown)
    assert not deployment("vllm serve m", env={"VLLM_DP_SIZE": ""}).knobs


def test_a_file_of_flags_leaves_the_rest_open() -> None:
    (word,) = deployment("vllm serve m --config serve.yaml").open_words
    assert "serve.yaml" in word.reason and word.span is not None and word.span.column == 23


def test_pods_are_the_controllers_else_the_nodes_of_the_command() -> None:
    assert value(deployment("vllm serve m --nnodes 2").pods) == 2
    made = server("vllm serve m --nnodes 2")._replace(pods=Located(4))
    assert value(engines.read(made).pods) == 4
    assert deployment("vllm serve m").pods is None


def test_sglang_sizes_are_as_written() -> None:
    found = deployment(
        "python3 -m sglang.launch_server --model-path m --tp 8 --dp-size 8 --ep-size=4 --enable-dp-attention "
        "--mem-fraction-static 0.85 --context-length 8192 --some-new-flag x",
        engine="sglang",
    )
    assert value(found.model) == "m"
    assert {name: value(knob) for name, knob in found.knobs.items()} == {
        "tensor_parallel_size": 8,
        "data_parallel_size": 8,
        "expert_parallel_size": 4,
        "max_model_len": 8192,
    }
    assert {name: value(field) for name, field in found.engine_fields.items()} == {
        "enable-dp-attention": True,
        "mem-fraction-static": 0.85,
    }
    assert not found.flag_problems


def test_trtllm_and_tgi_say_model_and_shards() -> None:
    trtllm = deployment("trtllm-serve m --tp_size 8 --ep_size 4", engine="trtllm")
    assert value(trtllm.model) == "m" and value(trtllm.knobs["tensor_parallel_size"]) == 8
    tgi = deployment("", engine="tgi", env={"MODEL_ID": "m", "NUM_SHARD": "2", "MAX_TOTAL_TOKENS": "4096"})
    assert value(tgi.model) == "m" and value(tgi.knobs["tensor_parallel_size"]) == 2
    assert value(tgi.knobs["max_model_len"]) == 4096
    flagged = deployment("text-generation-launcher --model-id n --num-shard 4", engine="tgi", env={"MODEL_ID": "m"})
    assert value(flagged.model) == "n"


def nim(image: str, **env: str):
    made = server("", engine="other", env=env)
    return engines.read(made._replace(primary=made.primary._replace(image=Located(image, AT))))


def test_an_image_may_be_named_after_its_model() -> None:
    model = nim("nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8").model
    assert isinstance(model, Located)
    assert (model.value, model.origin) == ("meta/llama-3.1-8b-instruct", "derived")
    assert nim("nvcr.io/nim/nvidia/llm-nim:1.12").model is None
    named = nim("nvcr.io/nim/nvidia/llm-nim:1.12", NIM_MODEL_NAME="hf://meta-llama/Llama-3.2-1B-Instruct").model
    assert value(named) == "meta-llama/Llama-3.2-1B-Instruct"


@pytest.mark.parametrize(
    ("profile", "sizes"),
    [
        ("vllm-bf16-tp4", (4, None)),
        ("tensorrt_llm-h100-fp8-tp8-pp2-throughput", (8, 2)),
        ("tensorrt_llm-h100_nvl-bf16-tp2-pp1-latency-2.1.0", (2, 1)),
        ("e45b4b991bbc51d0df3ce53e87060fc3a7f76555406ed534a8479c6faa706987", (None, None)),
    ],
)
def test_a_profile_says_the_sizes_in_its_name(profile: str, sizes: tuple[int | None, int | None]) -> None:
    knobs = nim("nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8", NIM_MODEL_PROFILE=profile).knobs
    found = [knobs.get(name) for name in ("tensor_parallel_size", "pipeline_parallel_size")]
    assert tuple(None if size is None else value(size) for size in found) == sizes


def test_a_server_around_the_engine_has_flags_and_names_of_its_own() -> None:
    found = deployment("python -m huggingfaceserver --model_name=x --model_id=org/m --max_length 512 --odd 1 -tp 2")
    assert value(found.model) == "org/m"
    assert {name: value(knob) for name, knob in found.knobs.items()} == {
        "max_model_len": 512,
        "tensor_parallel_size": 2,
    }
    assert not found.flag_problems
    assert deployment("vllm serve org/m --odd 1").flag_problems
