"""KAITO's objects: preset models by name, on machines by name, with arguments in a ConfigMap."""

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

WORKSPACE = """
kind: Workspace
apiVersion: kaito.sh/v1beta1
metadata: {name: chat%s}
resource: {instanceType: Standard_NC48ads_A100_v4%s}
inference: {preset: {name: llama-3.1-8b-instruct}%s}
"""
CONFIG = """
kind: ConfigMap
metadata: {name: arguments}
data:
  inference_config.yaml: |
    max_probe_steps: 6
    vllm:
      tensor-parallel-size: 2
      max-model-len: 16384
"""


def workspace(metadata="", resource="", inference=""):
    return WORKSPACE % (metadata, resource, inference)


def knobs(launch):
    return engines.read(Server("vllm", launch)).knobs


def test_a_preset_is_served_by_vllm_on_a_machine(read, words):
    got = read(workspace())
    assert (got.form, got.only.name) == ("kaito", "Workspace/chat")
    assert words(got.only) == ["vllm", "serve", "llama-3.1-8b-instruct"]
    assert got.only.gpu.value == "Standard_NC48ads_A100_v4"
    assert got.only.gpus_per_pod is None


def test_sizes_that_the_controller_chooses_are_unknown(read):
    one, two = (knobs(read(workspace(resource=part)).only) for part in ("", ", count: 2"))
    assert isinstance(one["tensor_parallel_size"], Unknown)
    assert "pipeline_parallel_size" not in one
    assert isinstance(two["pipeline_parallel_size"], Unknown)
    assert read(workspace(resource=", count: 2")).only.pods.value == 2


def test_the_arguments_come_from_the_config_map_of_the_file(read):
    got = read(CONFIG + "---" + workspace(inference=", config: arguments"))
    found = knobs(got.only)
    assert (found["tensor_parallel_size"].value, found["max_model_len"].value) == (2, 16384)
    assert got.cut(found["max_model_len"]) == "16384"
    assert list(found) == ["tensor_parallel_size", "max_model_len"]


def test_or_of_another_file_of_the_folder(read):
    alone = read(workspace(inference=", config: arguments"))
    assert isinstance(alone.only.argv[-1], Unknown)
    beside = read(workspace(inference=", config: arguments"), **{"deploy/config.yaml": CONFIG})
    tensor = knobs(beside.only)["tensor_parallel_size"]
    assert (tensor.value, tensor.span.path) == (2, "deploy/config.yaml")


def test_a_partition_says_how_many_cards(read):
    assert read(workspace(resource=", partition: {mode: accelerator, count: 4}")).only.gpus_per_pod.value == 4


def test_a_set_has_copies_of_its_template(read, words):
    got = read(
        """
        kind: InferenceSet
        apiVersion: kaito.sh/v1beta1
        metadata: {name: chat}
        spec:
          replicas: 3
          template:
            resource: {instanceType: Standard_ND96isr_H200_v5}
            inference: {preset: {name: google/gemma-3-27b-it}}
        """
    )
    assert (got.only.name, got.only.replicas.value) == ("InferenceSet/chat", 3)
    assert words(got.only)[-1] == "google/gemma-3-27b-it"
    assert got.only.gpu.value == "Standard_ND96isr_H200_v5"


def test_roles_are_servers_of_their_own(read):
    got = read(
        """
        kind: MultiRoleInference
        apiVersion: kaito.sh/v1alpha1
        metadata: {name: pd}
        spec:
          model: {name: org/model}
          roles:
          - {type: prefill, replicas: 2, instanceType: Standard_ND96isr_H100_v5}
          - {type: decode, replicas: 1, instanceType: Standard_ND96isr_H200_v5}
        """
    )
    assert [launch.name for launch in got.launches] == ["MultiRoleInference/pd/prefill", "MultiRoleInference/pd/decode"]
    assert [launch.replicas.value for launch in got.launches] == [2, 1]
    assert all(isinstance(launch.pods, Unknown) for launch in got.launches)


def test_another_runtime_is_no_vllm(read):
    launch = read(workspace(metadata=', annotations: {kaito.sh/runtime: "transformers"}')).only
    assert engines.recognise(launch) == "other"
    assert engines.read(Server("other", launch)).model.value == "llama-3.1-8b-instruct"


def test_a_pod_template_is_read_as_any(read, words):
    got = read(
        """
        kind: Workspace
        apiVersion: kaito.sh/v1beta1
        metadata: {name: own}
        resource: {instanceType: Standard_NC24ads_A100_v4}
        inference:
          template:
            spec:
              containers:
              - {name: main, command: [vllm, serve, org/model], resources: {limits: {nvidia.com/gpu: 1}}}
        """
    )
    assert words(got.only) == ["vllm", "serve", "org/model"]
    assert (got.only.gpu.value, got.only.gpus_per_pod.value) == ("Standard_NC24ads_A100_v4", 1)


def test_tuning_and_workspaces_of_others_are_passed_over(read):
    assert read(workspace().replace("kaito.sh", "example.com")).form is None
    assert read("kind: Workspace\napiVersion: kaito.sh/v1beta1\ntuning: {preset: {name: x}}").form is None
