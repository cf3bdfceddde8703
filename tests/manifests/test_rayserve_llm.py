"""Ray Serve's YAML: LLM configs, their arguments, copies and cards."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Located, Unknown

SERVE = """
applications:
- name: chat
  import_path: ray.serve.llm:build_openai_app
  runtime_env: {pip: [vllm==0.11.0]}
  args:
    llm_configs:
    - model_loading_config: {model_id: chat, model_source: org/model}
      accelerator_type: H100
      engine_kwargs: {tensor_parallel_size: 4, pipeline_parallel_size: 2, max_model_len: 8192}
      deployment_config: {num_replicas: 3}
    - model_loading_config: {model_id: org/other}
      deployment_config: {autoscaling_config: {min_replicas: 2, max_replicas: 9}}
"""


def started(got):
    """The engines, without the installers beside them."""
    return [launch for launch in got.launches if engines.recognise(launch)]


def knobs(launch):
    read = engines.read(Server(engines.recognise(launch), launch))
    return {name: value.value for name, value in read.knobs.items() if isinstance(value, Located)}


def test_every_config_of_an_application_is_an_engine(read, words):
    got = read(SERVE)
    assert got.form == "rayserve-llm"
    first, second = started(got)
    assert [launch.name for launch in (first, second)] == ["application/chat/chat", "application/chat/org/other"]
    assert words(first) == ["vllm", "serve", "org/model"]
    assert words(second) == ["vllm", "serve", "org/other"]
    assert knobs(first) == {
        "tensor_parallel_size": 4, "pipeline_parallel_size": 2, "max_model_len": 8192,
        "distributed_executor_backend": "ray",
    }  # fmt: skip
    assert first.gpu.value == "H100"
    assert (first.replicas.value, second.replicas.value) == (3, 2)
    assert first.gpus_per_pod is None


def test_what_ray_installs_tells_the_release(read, words):
    installer, engine = read(SERVE).launches[:2]
    assert words(installer) == ["pip", "install", "vllm==0.11.0"]
    assert installer.unit == engine.unit


def test_prefill_and_decode_are_two_engines(read):
    got = read(
        """
        applications:
        - import_path: ray.serve.llm:build_pd_openai_app
          args:
            prefill_config: {model_loading_config: {model_id: a/b}, engine_kwargs: {tensor_parallel_size: 1}}
            decode_config: {model_loading_config: {model_id: a/b}, engine_kwargs: {tensor_parallel_size: 2}}
        """
    )
    assert [(launch.name.rpartition("/")[2], knobs(launch)["tensor_parallel_size"]) for launch in got.launches] == [
        ("prefill", 1),
        ("decode", 2),
    ]


def test_one_config_for_a_builder_of_data_parallel_applications(read):
    got = read(
        """
        applications:
        - import_path: ray.serve.llm:build_dp_openai_app
          args: {llm_config: {model_loading_config: {model_id: a/b}, engine_kwargs: {data_parallel_size: 4}}}
        """
    )
    assert knobs(got.only)["data_parallel_size"] == 4


def test_a_file_may_be_one_config(read, words):
    got = read(
        """
        model_loading_config: {model_id: a/b}
        placement_group_config: {strategy: STRICT_PACK, bundles: [{GPU: 1}, {GPU: 1, CPU: 2}, {CPU: 1}]}
        engine_kwargs: {tensor_parallel_size: 2}
        """
    )
    assert words(got.only)[-1] == "a/b"
    assert got.only.kind == "LLMConfig"
    assert got.only.gpus_per_pod.value == 2
    assert got.only.pods.value == 1


def test_a_placement_group_that_may_spread_says_nothing_of_a_node(read):
    got = read(
        "model_loading_config: {model_id: a/b}\nplacement_group_config: {strategy: PACK, bundles: [{GPU: 1}, {GPU: 1}]}\n"
    )
    assert got.only.gpus_per_pod is None


def test_the_older_schema_calls_the_size_a_degree(read):
    got = read("model_loading_config: {model_id: a/b}\ntensor_parallelism: {degree: 4}\nllm_engine: VLLMEngine\n")
    assert knobs(got.only)["tensor_parallel_size"] == 4
    assert got.cut(got.only.settings[0].value) == "4"


def test_the_oldest_schema_counts_workers(read, words):
    got = read(
        """
        deployment_config: {autoscaling_config: {min_replicas: 1}}
        engine_config: {model_id: served, hf_model_id: a/b, engine_kwargs: {max_num_seqs: 8}}
        scaling_config: {num_workers: 2, num_gpus_per_worker: 1}
        """
    )
    assert words(got.only)[-1] == "a/b"
    assert knobs(got.only)["tensor_parallel_size"] == 2


def test_a_config_in_another_file_stands_for_itself(read):
    got = read("applications:\n- import_path: rayllm:app\n  args: {llm_configs: [./models/a.yaml]}\n")
    assert got.form == "rayserve-llm"
    assert started(got) == []


@pytest.mark.parametrize("source", ["s3://$BUCKET/m", "${MODEL}", "{{ model }}"])
def test_a_placeholder_is_no_model(read, source):
    got = read(f"model_loading_config:\n  model_id: x\n  model_source: '{source}'\n")
    assert isinstance(got.only.argv[-1], Unknown)


def test_weights_in_a_bucket(read, words):
    got = read("model_loading_config: {model_id: x, model_source: {bucket_uri: s3://bucket/m}}\n")
    assert words(got.only)[-1] == "s3://bucket/m"


@pytest.mark.parametrize(
    "text",
    [
        "applications: []\n",
        "applications: [{import_path: images:app}]\n",
        "applications: {a: b}\n",
        "applications: [x, {args: {llm_configs: {}}, import_path: a:b}]\n",
        "model_loading_config: x\n",
        "kind: Other\napplications: [{import_path: vllm:app}]\n",
    ],
)
def test_what_serves_no_language_model_is_left_alone(read, text):
    assert started(read(text)) == []
