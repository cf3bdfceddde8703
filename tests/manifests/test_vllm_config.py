"""Files of flags that stand alone: told from other YAML, and read as if a command named them."""

import pytest

from shardlint.findings import Unknown


def test_a_file_with_a_model_is_a_whole_command(read, words):
    got = read("# serve\nmodel: org/model\ntensor-parallel-size: 8\n", "deploy/serve.yaml")
    assert (got.form, got.only.name, got.only.kind) == ("vllm-config", "serve.yaml", "config")
    assert words(got.only) == ["vllm", "serve", "--config", "serve.yaml"]
    assert got.cut(got.only.at) == "model"


def test_a_file_without_a_model_leaves_open_what_stands_beside_it(read):
    model, *_, rest = read("tensor-parallel-size: 8\ntrust-remote-code: true\n").only.argv[2:]
    assert isinstance(model, Unknown) and isinstance(rest, Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "model: m\ntensor_parallel_size: 2",
        "model: m\nmax-model-len: 8192",
        "tensor-parallel-size: 8\nmax-model-len: 8192\ngpu_memory_utilization: 0.95",
        "tensor-parallel-size: 2\npipeline-parallel-size: 2",
        "model: m\ntensor-parallel-size: 2\nspeculative-config: {method: mtp}\nhf-overrides: {a: {b: 1}}",
    ],
)
def test_keys_that_are_vllms_make_the_form(read, text):
    assert read(text).form == "vllm-config"


def test_sglangs_own_keys_make_its_command(read, words):
    got = read("model-path: m\ntensor-parallel-size: 4\nmem-fraction-static: '0.95'\n")
    assert words(got.only)[:4] == ["python3", "-m", "sglang.launch_server", "--config"]


@pytest.mark.parametrize(
    "text",
    [
        "tensor-parallel-size: 8",
        "model: m\ntemperature: 1.0",
        "model: {name: m}\ntensor_parallel_size: 2\nmax_model_len: 8192",
        "kv-cache-dtype: fp8\nmax-num-batched-tokens: 8192\nspeculative-config: '{}'",
        "tensor_parallel_size: 16\nkv_cache_dtype: fp8\nenable_attention_dp: true",
        "trainer: {tensor_parallel_size: 2}\nmodel: m\nmax_model_len: 1",
        "- model: m\n  tensor-parallel-size: 2",
        "context-length: 10",
    ],
)
def test_other_yaml_is_not_swallowed(read, text):
    assert read(text).form != "vllm-config"


OWN = """
# settings of our vLLM server
model: {name: org/m, trust_remote_code: false}
gpu: {gpu_ids: [3, 4], gpu_memory_utilization: 0.9}
tensor_parallel_size: 2
max_model_len: 4096
additional_args: ["--enable-prefix-caching", "--seed", "1"]
"""


def test_a_configuration_of_ones_own_says_flags_in_sections(read, words):
    got = read(OWN, "server.yaml")
    only = got.only
    assert words(only)[:6] == ["vllm", "serve", "org/m", "--enable-prefix-caching", "--seed", "1"]
    assert {entry.key.value: entry.value.value for entry in only.settings} == {
        "tensor-parallel-size": 2,
        "max-model-len": 4096,
        "gpu-memory-utilization": 0.9,
        "trust-remote-code": False,
    }
    assert (only.gpus_per_pod.value, got.form) == (2, "vllm-config")


def test_a_configuration_that_says_less_is_none(read):
    assert not read(OWN.replace("vLLM", "own"), "server.yaml").launches
    assert not read(OWN.replace("name: org/m, ", ""), "server.yaml").launches
    assert not read("# vllm\nmodel: {name: m}\nmax_model_len: 8\n", "server.yaml").launches
