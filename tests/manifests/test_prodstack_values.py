import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

VALUES = """
servingEngineSpec:
  runtimeClassName: ""
  env: [{name: A, value: b}]
  modelSpec:
  - name: llm
    repository: vllm/vllm-openai
    tag: v0.8.5
    modelURL: org/model
    replicaCount: 2
    requestGPU: 4
    vllmConfig:
      tensorParallelSize: 4
      maxModelLen: 4096
      gpuMemoryUtilization: 0.8
      enablePrefixCaching: true
      v0: "1"
      extraArgs: ["--max-num-seqs", "64"]
routerSpec: {repository: x/router}
"""


def told(launch):
    return engines.read(Server(engines.recognise(launch), launch))


def test_a_model_is_a_deployment(read, words):
    got = read(VALUES)
    assert (got.form, got.only.name) == ("prodstack-values", "values/llm")
    assert got.cut(got.only.at) == "llm"
    assert words(got.only) == ["vllm", "serve", "org/model", "--max-num-seqs", "64"]
    assert (got.only.image.value, got.cut(got.only.image)) == ("vllm/vllm-openai:v0.8.5", "v0.8.5")
    assert (got.only.gpus_per_pod.value, got.only.replicas.value, got.only.pods) == (4, 2, None)
    assert got.only.env["A"].value == "b"


def test_its_fields_are_flags(read):
    got = read(VALUES)
    read_as = told(got.only)
    assert (read_as.model.value, read_as.engine_version.value) == ("org/model", "0.8.5")
    values = {name: knob.value for name, knob in read_as.knobs.items()}
    assert values["tensor_parallel_size"] == 4 and values["max_model_len"] == 4096
    assert values["gpu_memory_utilization"] == 0.8 and values["max_num_seqs"] == 64
    assert got.cut(read_as.knobs["tensor_parallel_size"]) == "4"
    assert not read_as.flag_problems


def test_on_ray_the_copies_are_workers_beside_a_head(read):
    launch = read(VALUES.replace("    requestGPU: 4", "    requestGPU: 4\n    raySpec: {enabled: true}")).only
    assert (launch.pods.value, launch.pods.source, launch.replicas) == (3, "a head + 2 workers", None)
    assert told(launch).knobs["distributed_executor_backend"].value == "ray"


def test_visible_devices_of_the_cache_narrow_the_cards(read):
    one = read(VALUES.replace("requestGPU: 4", 'lmcacheConfig: {cudaVisibleDevices: "0"}'))
    assert one.only.gpus_per_pod.value == 1


def test_the_card_is_named_by_node_or_resource(read):
    terms = (
        "nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-L4]}]}]"
    )
    assert read(VALUES.replace("replicaCount: 2", terms)).only.gpu.value == "NVIDIA-L4"
    resource = read(VALUES.replace("replicaCount: 2", "requestGPUType: nvidia.com/mig-4g.71gb"))
    assert resource.only.gpu.value == "nvidia.com/mig-4g.71gb"
    assert read(VALUES.replace("replicaCount: 2", "requestGPUType: amd.com/gpu")).only.gpu is None


@pytest.mark.parametrize("off", ["enabled: false", "replicaCount: 0"])
def test_a_model_that_is_off_is_none(read, off):
    assert read(VALUES.replace("replicaCount: 2", off)).launches == ()
    assert read(VALUES.replace('runtimeClassName: ""', "enableEngine: false")).launches == ()


def test_what_is_not_written_is_unknown(read):
    launch = read(VALUES.replace("modelURL: org/model", "x: y").replace("tag: v0.8.5", 'tag: "{{ .tag }}"')).only
    assert isinstance(launch.argv[2], Unknown) and isinstance(launch.image, Unknown)


RUNTIME = """
kind: VLLMRuntime
metadata: {name: llm}
spec:
  model: {modelURL: org/model, maxModelLen: 4096}
  vllmConfig: {tensorParallelSize: 2, extraArgs: [--enforce-eager], env: [{name: A, value: b}]}
  deploymentConfig: {replicas: 3, resources: {gpu: "2"}, image: {registry: docker.io, name: "lmcache/vllm-openai:x"}}
"""
OLDER = """
kind: VLLMRuntime
metadata: {name: llm}
spec:
  model: {modelURL: org/model, maxModelLen: 4096}
  tensorParallelSize: 2
  extraArgs: [--enforce-eager]
  env: [{name: A, value: b}]
  replicas: 3
  resources: {gpu: "2"}
  image: {registry: docker.io, name: "lmcache/vllm-openai:x"}
"""


@pytest.mark.parametrize("text", [RUNTIME, OLDER])
def test_an_object_of_the_operator_states_the_same(read, words, text):
    launch = read(text).only
    assert (launch.name, launch.replicas.value, launch.gpus_per_pod.value) == ("VLLMRuntime/llm", 3, 2)
    assert launch.image.value == "docker.io/lmcache/vllm-openai:x"
    assert words(launch) == ["vllm", "serve", "org/model", "--enforce-eager"]
    assert {name: knob.value for name, knob in told(launch).knobs.items() if name != "x"} == {
        "tensor_parallel_size": 2,
        "max_model_len": 4096,
    }
    assert launch.env["A"].value == "b"
