"""KServe's LLMInferenceService, and the configurations that it is based on."""

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

SERVICE = """
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: chat%s}
spec:
  model: {uri: "hf://org/model", name: served}
  replicas: 2
  template:
    containers:
    - {name: sidecar, image: busybox, command: [sh, -c, "sleep 1d"]}
    - name: main
      image: ghcr.io/llm-d/llm-d-cuda:v0.9.0
      env:
      - name: VLLM_ADDITIONAL_ARGS
        value: >-
          --tensor-parallel-size=2
          --kv-transfer-config '{"kv_role": "kv_both"}'
      resources: {limits: {nvidia.com/gpu: 2}}
"""


def deployment(launch):
    return engines.read(Server("vllm", launch))


def test_the_controller_starts_vllm_with_the_additional_arguments(read, words):
    got = read(SERVICE % "")
    assert (got.form, got.only.name, got.only.replicas.value) == ("kserve-llmisvc", "LLMInferenceService/chat", 2)
    assert words(got.only) == [
        "vllm", "serve", "org/model", "--tensor-parallel-size=2", "--kv-transfer-config", '{"kv_role": "kv_both"}',
    ]  # fmt: skip
    assert got.cut(got.only.argv[3]) == "--tensor-parallel-size=2"
    assert got.only.gpus_per_pod.value == 2


def test_arguments_alone_go_behind(read, words):
    got = read(
        """
        kind: LLMInferenceService
        metadata: {name: chat}
        spec:
          model: {uri: "pvc://volume/x"}
          template: {containers: [{name: main, args: [--max-model-len=4096]}]}
        """
    )
    assert words(got.only) == ["vllm", "serve", "pvc://volume/x", "--max-model-len=4096"]


def test_a_command_of_its_own_serves_the_same_model(read, words):
    got = read(
        """
        kind: LLMInferenceService
        metadata: {name: chat}
        spec:
          model: {uri: "hf://org/model"}
          template:
            containers:
            - {name: main, command: [sh, -c, "vllm serve /mnt/models -tp 2 $VLLM_ADDITIONAL_ARGS"],
               env: [{name: VLLM_ADDITIONAL_ARGS, value: "--max-model-len 10"}]}
        """
    )
    assert words(got.only) == ["vllm", "serve", "org/model", "-tp", "2", "--max-model-len", "10"]


def test_an_instance_on_several_pods_has_the_sizes_that_are_stated(read):
    got = read(
        """
        kind: LLMInferenceService
        metadata: {name: wide}
        spec:
          model: {uri: "hf://org/model"}
          parallelism: {data: 32, dataLocal: 8, expert: true, tensor: 1}
          template: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}
          worker: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}
        """
    )
    leader, worker = got.launches
    assert leader.group == worker.group != ""
    assert leader.pods.value == 4
    knobs = {name: knob.value for name, knob in deployment(leader).knobs.items()}
    assert knobs == {
        "tensor_parallel_size": 1,
        "data_parallel_size": 32,
        "data_parallel_size_local": 8,
        "enable_expert_parallel": True,
    }


def test_the_controllers_command_of_a_single_pod_is_given_the_tensor_size_alone(read):
    sizes = "  parallelism: {tensor: 8, data: 4, pipeline: 2}\n"
    got = read((SERVICE % "").replace("--tensor-parallel-size=2", "--seed=1") + sizes)
    knobs = {name: knob.value for name, knob in deployment(got.only).knobs.items()}
    assert knobs == {"tensor_parallel_size": 8}
    assert got.cut(deployment(got.only).knobs["tensor_parallel_size"]) == "8"


def test_additional_arguments_stand_behind_the_tensor_size_and_win(read):
    got = read((SERVICE % "") + "  parallelism: {tensor: 8}\n")
    assert deployment(got.only).knobs["tensor_parallel_size"].value == 2


def test_a_command_of_ones_own_in_a_single_pod_is_given_no_sizes(read):
    own = (SERVICE % "").replace("resources:", "command: [vllm, serve, /mnt/models]\n      resources:")
    assert read(own + "  parallelism: {tensor: 8}\n").only.settings == ()


def test_decode_and_prefill_are_servers_of_their_own(read, words):
    got = read(
        (SERVICE % "")
        + """
  prefill:
    replicas: 3
    template: {containers: [{name: main, env: [{name: VLLM_ADDITIONAL_ARGS, value: "-tp 4"}]}]}
"""
    )
    assert [launch.name.rpartition("/")[2] for launch in got.launches] == ["decode", "prefill"]
    assert [launch.replicas.value for launch in got.launches] == [2, 3]
    assert words(got.launches[1]) == ["vllm", "serve", "org/model", "-tp", "4"]


def test_devices_that_annotations_claim(read):
    notes = (
        ', annotations: {serving.kserve.io/exp-dra-device-count: "4", serving.kserve.io/exp-dra-container-name: main,'
        " serving.kserve.io/exp-dra-cel-selector: \"device.attributes['gpu.nvidia.com']['type'] == 'A100'\"}"
    )
    text = (SERVICE % notes).replace("      resources: {limits: {nvidia.com/gpu: 2}}\n", "")
    got = read(text)
    assert (got.only.gpus_per_pod.value, got.only.gpu.value) == (4, "A100")
    assert got.cut(got.only.gpu) == "A100"
    assert read(text.replace("name: main,", "name: other,")).only.gpus_per_pod is None


CONFIG = """
kind: LLMInferenceServiceConfig
metadata: {name: base}
spec:
  template:
    containers:
    - {name: main, image: "vllm/vllm-openai:v0.10.0", command: [vllm, serve, /mnt/models], args: [--max-model-len=4096]}
"""
BASED = """
kind: LLMInferenceService
metadata: {name: chat}
spec:
  model: {uri: "hf://org/model"}
  baseRefs: [{name: base}]
  template: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 4}}}]}
"""


def test_a_configuration_alone_names_no_model(read):
    model = deployment(read(CONFIG).only).model
    assert isinstance(model, Unknown) and "names the model" in model.reason


@pytest.mark.parametrize("same_file", [True, False])
def test_a_service_lies_over_its_configuration(read, words, same_file):
    got = read(BASED + "---" + CONFIG if same_file else BASED, **({} if same_file else {"deploy/base.yaml": CONFIG}))
    launch = got.only
    assert words(launch) == ["vllm", "serve", "org/model", "--max-model-len=4096"]
    assert (launch.gpus_per_pod.value, launch.image.value) == (4, "vllm/vllm-openai:v0.10.0")


def test_a_configuration_without_pods_starts_nothing(read):
    assert read("kind: LLMInferenceServiceConfig\nmetadata: {name: r}\nspec: {router: {}}").form is None
