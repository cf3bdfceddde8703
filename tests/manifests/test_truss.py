"""Truss: start commands, the section of TensorRT-LLM, and models with code of their own."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Located, Unknown

SERVER = """
model_name: Some model
base_image:
  image: vllm/vllm-openai:v0.10.0
environment_variables:
  LENGTH: 4096
docker_server:
  start_command: >
    sh -c "VLLM_USE_V1=1 vllm serve org/model
    --tensor-parallel-size 4 --max-model-len $LENGTH"
resources:
  accelerator: H100:8
"""


def engine(got):
    (launch,) = [launch for launch in got.launches if engines.recognise(launch)]
    return launch


def deployment(got):
    launch = engine(got)
    return engines.read(Server(engines.recognise(launch), launch, got.launches))


def knobs(read):
    return {name: value.value for name, value in read.knobs.items() if isinstance(value, Located)}


def test_the_start_command_is_a_shells(read, words):
    got = read(SERVER)
    assert got.form == "truss"
    launch = engine(got)
    assert launch.name == "truss/Some model"
    assert words(launch) == [
        "vllm", "serve", "org/model", "--tensor-parallel-size", "4", "--max-model-len", "4096",
    ]  # fmt: skip
    assert (launch.gpus_per_pod.value, launch.gpu.value) == (8, "H100")
    assert launch.env["VLLM_USE_V1"].value == "1"
    assert got.cut(launch.argv[2]) == "org/model"


def test_the_builder_of_tensorrt_llm(read):
    got = read(
        """
        resources: {accelerator: "H100:4"}
        trt_llm:
          build:
            checkpoint_repository: {repo: org/model, source: HF}
            tensor_parallel_count: 4
            max_seq_len: 8192
        """
    )
    read_ = deployment(got)
    assert (read_.engine, read_.model.value) == ("trtllm", "org/model")
    assert knobs(read_) == {"tensor_parallel_size": 4, "max_model_len": 8192}
    assert got.cut(read_.knobs["tensor_parallel_size"]) == "4"


def test_the_server_of_tensorrt_llm_has_the_last_word(read):
    got = read(
        """
        model_name: x
        resources: {accelerator: "H100:8"}
        trt_llm:
          inference_stack: v2
          build: {checkpoint_repository: {repo: some/empty}, max_seq_len: 1}
          runtime:
            tensor_parallel_size: 8
            max_seq_len: 340000
            patch_kwargs: {moe_expert_parallel_size: 4, model_path: /app/model_cache/m}
        """
    )
    read_ = deployment(got)
    assert read_.model.value == "/app/model_cache/m"
    assert knobs(read_)["max_model_len"] == 340000
    assert knobs(read_)["expert_parallel_size"] == 4


def test_code_is_told_by_metadata_and_its_release_by_requirements(read):
    got = read(
        """
        model_name: x
        requirements: [vllm==0.5.3post1, transformers]
        model_metadata:
          repo_id: org/model
          tensor_parallel: 8
          engine_args: {max_model_len: 4096, model: ignored}
        resources: {accelerator: "A100:8"}
        """
    )
    read_ = deployment(got)
    assert (read_.model.value, read_.engine_version.value) == ("org/model", "0.5.3post1")
    assert knobs(read_) == {"tensor_parallel_size": 8, "max_model_len": 4096}
    assert read_.open_words


def test_weights_name_the_model_where_nothing_else_does(read):
    got = read(
        "model_name: x\nrequirements: [vllm]\nweights: [{source: 'hf://org/model@main'}]\nresources: {use_gpu: true}\n"
    )
    assert deployment(got).model.value == "org/model"


def test_older_configurations_name_a_server(read):
    got = read(
        """
        build: {model_server: VLLM, arguments: {endpoint: Completions, model: org/model, tensor_parallel_size: 2}}
        model_name: x
        resources: {accelerator: "A10G:2"}
        """
    )
    read_ = deployment(got)
    assert (read_.model.value, knobs(read_)) == ("org/model", {"tensor_parallel_size": 2})
    assert not read_.flag_problems


def test_a_script_of_the_truss_is_code_too(read):
    got = read(
        """
        base_image: {image: "vllm/vllm-openai:v0.8.4"}
        model_metadata: {repo_id: org/model}
        docker_server: {start_command: sh -c /app/data/do.sh}
        resources: {accelerator: "H100:4"}
        """
    )
    read_ = deployment(got)
    assert (read_.engine, read_.model.value, read_.engine_version.value) == ("vllm", "org/model", "0.8.4")
    assert read_.open_words


def test_an_image_of_triton_with_tensorrt_llm(read):
    got = read(
        """
        base_image: {image: "nvcr.io/nvidia/tritonserver:23.10-trtllm-python-py3"}
        model_metadata: {tensor_parallelism: 2}
        python_version: py311
        resources: {accelerator: "A100:2"}
        """
    )
    read_ = deployment(got)
    assert (read_.engine, knobs(read_)) == ("trtllm", {"tensor_parallel_size": 2})
    assert isinstance(read_.model, Unknown)


def test_code_without_a_word_of_an_engine_starts_none(read):
    got = read("model_name: x\nrequirements: [torch]\nresources: {accelerator: T4}\n")
    assert [launch for launch in got.launches if engines.recognise(launch)] == []


@pytest.mark.parametrize("accelerator", ["null", "{{ gpu }}"])
def test_cards_may_be_unknown(read, accelerator):
    launch = engine(read(f"model_name: x\nresources:\n  accelerator: {accelerator}\ntrt_llm: {{build: {{}}}}\n"))
    assert launch.gpus_per_pod is None or isinstance(launch.gpus_per_pod, Unknown)


@pytest.mark.parametrize("text", ["resources: {}\n", "model_name: x\n", "docker_server: 3\nresources: {}\n"])
def test_other_files_are_no_truss(read, text):
    assert read(text).launches == ()
