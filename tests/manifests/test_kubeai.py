"""KubeAI's models, as objects and as a catalogue of chart values."""

import pytest
from stated_layouts import deployments

from shardlint import engines
from shardlint.findings import Unknown

MODEL = """
    apiVersion: kubeai.org/v1
    kind: Model
    metadata: {name: chat}
    spec:
      url: %s
      engine: %s
      resourceProfile: %s
      minReplicas: 2
      args: [--max-model-len=8192, --tensor-parallel-size=2]
      env: {VLLM_USE_V1: "1", EMPTY: null}
"""


def model(url="hf://org/model", engine="VLLM", profile="nvidia-gpu-l4:8"):
    return MODEL % (url, engine, profile)


def test_a_model_is_a_command_with_its_arguments(read, words):
    got = read(model())
    assert (got.form, got.only.name, got.cut(got.only.at)) == ("kubeai", "Model/chat", "chat")
    assert words(got.only) == [
        "vllm",
        "serve",
        "--model",
        "org/model",
        "--max-model-len=8192",
        "--tensor-parallel-size=2",
    ]
    assert got.only.env["VLLM_USE_V1"].value == "1"
    assert got.only.replicas.value == 2
    assert (got.only.gpu.value, got.only.gpus_per_pod.value) == ("nvidia-gpu-l4", 8)


@pytest.mark.parametrize(
    ("engine", "first", "name"),
    [
        ("SGLang", ["python3", "-m", "sglang.launch_server", "--model-path", "org/model"], "sglang"),
        ("LlamaCpp", ["llama-server", "--hf-repo", "org/model"], "other"),
        ("OLlama", ["ollama", "serve"], None),
        ("FasterWhisper", ["fasterwhisper"], None),
    ],
)
def test_the_engine_is_the_one_that_is_named(read, words, engine, first, name):
    launch = read(model(engine=engine)).only
    assert words(launch)[: len(first)] == first
    assert engines.recognise(launch) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("hf://org/model:v1.1", "org/model"),
        ("s3://bucket/model", "s3://bucket/model"),
        ("pvc://volume/path", "pvc://volume/path"),
    ],
)
def test_the_hub_is_named_by_id_and_other_places_as_written(read, words, url, name):
    assert words(read(model(url=url)).only)[3] == name


def test_profiles_without_cards_and_without_number(read):
    assert read(model(profile="cpu:4")).only.gpus_per_pod.value == 0
    assert read(model(profile="cpu:4")).only.gpu is None
    assert isinstance(read(model(profile="nvidia-gpu-h100")).only.gpus_per_pod, Unknown)


def test_models_of_other_operators_are_not_read(read):
    assert read(model().replace("kubeai.org/v1", "example.com/v1")).form is None


def test_a_catalogue_yields_what_it_switches_on(read, words):
    got = read(
        """
        catalog:
          on: {enabled: true, url: "hf://org/on", engine: VLLM, resourceProfile: "nvidia-gpu-h100:2"}
          off: {enabled: false, url: "hf://org/off", engine: VLLM}
          preset: {enabled: true, resourceProfile: "nvidia-gpu-l4:2"}
        """
    )
    assert (got.only.name, words(got.only)) == ("values/on", ["vllm", "serve", "--model", "org/on"])


def test_a_model_among_the_arguments_takes_the_place_of_the_url(read):
    (deployment,) = deployments(read(model().replace("--max-model-len=8192", "--model=org/other")).launches)
    assert deployment.model.value == "org/other"
    assert not deployment.flag_problems
