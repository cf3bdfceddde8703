"""serving.properties of DJL Serving: which engine runs, and what it is told."""

from __future__ import annotations

import pytest

from shardlint import engines, manifests
from shardlint.deployment import Server
from shardlint.findings import Located, Unknown
from shardlint.manifests import _lmi
from shardlint.text.documents import documents
from shardlint.text.source import Source


def launches(text, path="model/serving.properties", shelf=None):
    (document,) = documents(Source(path, text)).documents
    return manifests.launches(document, shelf).launches


def deployment(text):
    (launch,) = launches(text)
    return engines.read(Server(engines.recognise(launch), launch))


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("option.rolling_batch=vllm\n", "vllm"),
        ("option.entryPoint=djl_python.lmi_vllm.vllm_async_service\noption.rolling_batch=disable\n", "vllm"),
        ("engine=Python\noption.gpu_memory_utilization=0.9\n", "vllm"),
        ("engine=MPI\noption.rolling_batch=trtllm\n", "trtllm"),
        ("engine=MPI\noption.rolling_batch=lmi-dist\noption.max_model_len=8\n", "other"),
        ("engine=DeepSpeed\noption.dtype=fp16\n", "other"),
    ],
)
def test_the_backend_tells_the_engine(text, engine):
    assert deployment("option.model_id=org/model\n" + text).engine == engine


def test_options_are_the_engines_arguments_under_names_of_their_own():
    read = deployment(
        "engine=Python\noption.model_id = org/model\noption.rolling_batch=vllm\noption.tensor_parallel_degree=8\n"
        "option.max_model_len=4096\noption.dtype=bf16\noption.enable_expert_parallel=true\noption.task=text-generation"
    )
    assert read.model.value == "org/model"
    sizes = {name: value.value for name, value in read.knobs.items()}
    assert sizes == {
        "tensor_parallel_size": 8, "max_model_len": 4096, "dtype": "bfloat16", "enable_expert_parallel": True,
    }  # fmt: skip
    span = read.knobs["tensor_parallel_size"].span
    assert (span.line, span.column, span.end_column) == (4, 31, 32)
    assert not read.flag_problems


def test_a_comment_behind_a_value_is_part_of_it():
    read = deployment("option.rolling_batch=vllm\noption.tensor_parallel_degree=4 # cards\n")
    assert isinstance(read.knobs["tensor_parallel_size"], Unknown)
    (problem,) = read.flag_problems
    assert problem.message == "argument --tensor-parallel-size/-tp: invalid int value: '4 # cards'"


def test_what_the_machine_decides_is_unknown():
    size = deployment("option.rolling_batch=vllm\noption.tensor_parallel_degree=max\n").knobs["tensor_parallel_size"]
    assert isinstance(size, Unknown) and size.reason == "max stands for all GPUs of the machine"


@pytest.mark.parametrize("model", ["", "option.model_id={{s3url}}\n", "option.s3url=${bucket}\n"])
def test_a_model_from_elsewhere_is_unknown(model):
    assert isinstance(deployment(f"engine=Python\noption.rolling_batch=vllm\n{model}").model, Unknown)


@pytest.mark.parametrize("text", ["org.gradle.jvmargs=-Xmx2g\n", "", "# engine=Python\n"])
def test_other_properties_are_not_of_the_form(text):
    assert launches(text) == ()


def test_the_same_options_in_a_containers_environment():
    env = {
        name: Located(value)
        for name, value in {
            "OPTION_ROLLING_BATCH": "vllm", "HF_MODEL_ID": "org/model", "TENSOR_PARALLEL_DEGREE": "2", "HOME": "/",
        }.items()
    }  # fmt: skip
    options = _lmi.options_of(env)
    assert {name: value.value for name, value in options.items()} == {
        "rolling_batch": "vllm", "model_id": "org/model", "tensor_parallel_degree": "2",
    }  # fmt: skip
