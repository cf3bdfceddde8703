import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

VALUES = """
multinode: false
modelArtifacts: {name: served, uri: "hf://org/model"}
accelerator: {type: nvidia}
routing: {proxy: {image: sidecar}}
decode:
  create: true
  replicas: 2
  parallelism: {tensor: 4}
  extraConfig: {nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}}
  containers:
  - name: vllm
    image: ghcr.io/llm-d/llm-d-cuda:v0.3.1
    modelCommand: vllmServe
    args: [--max-model-len, "4096"]
    resources: {limits: {cpu: 1}}
prefill:
  create: false
  containers: [{image: vllm, modelCommand: vllmServe}]
"""


def told(launch):
    return engines.read(Server(engines.recognise(launch), launch))


def sizes(launch):
    names = {"tensor_parallel_size": "tp", "data_parallel_size": "dp", "data_parallel_size_local": "local"}
    return {names[name]: knob.value for name, knob in told(launch).knobs.items() if name in names}


def test_a_role_that_is_created_is_a_deployment(read, words):
    got = read(VALUES)
    assert (got.form, got.only.name) == ("llmd-values", "values/decode")
    assert got.cut(got.only.at) == "decode"
    assert words(got.only) == ["vllm", "serve", "org/model", "--max-model-len", "4096"]
    assert sizes(got.only) == {"tp": 4}
    assert got.cut(told(got.only).knobs["tensor_parallel_size"]) == "4"
    assert told(got.only).knobs["tensor_parallel_size"].spelled == "tensor: 4"
    assert (got.only.replicas.value, got.only.pods, got.only.gpu.value) == (2, None, "NVIDIA-H200")
    assert not told(got.only).flag_problems


def test_the_sizes_make_the_number_of_cards(read):
    assert read(VALUES).only.gpus_per_pod.value == 4
    both = read(VALUES.replace("{tensor: 4}", "{tensor: 4, dataLocal: 2}")).only.gpus_per_pod
    assert (both.value, both.source) == (8, "2 x 4")
    assert read(VALUES.replace("{cpu: 1}", "{nvidia.com/gpu: 1}")).only.gpus_per_pod.value == 1
    unwritten = read(VALUES.replace("parallelism: {tensor: 4}", "")).only
    assert isinstance(unwritten.gpus_per_pod, Unknown)


@pytest.mark.parametrize(
    ("written", "flags", "pods"),
    [
        ("{tensor: 1, data: 16, dataLocal: 8}", {"tp": 1, "dp": 16, "local": 8}, 2),
        ("{dataLocal: 8, workers: 4}", {"dp": 32, "local": 8}, 4),
        ("{data: 32, workers: 4}", {"dp": 32, "local": 8}, 4),
        ("{data: 1, dataLocal: 1}", {"dp": 1}, 1),
    ],
)
def test_sizes_follow_from_each_other(read, written, flags, pods):
    launch = read(VALUES.replace("{tensor: 4}", written).replace("multinode: false", "multinode: true")).only
    assert sizes(launch) == flags
    assert launch.pods.value == pods


def test_a_command_of_its_own_sees_the_sizes_as_variables(read, words):
    own = "command: [sh, -c], args: ['vllm serve m -tp $TP_SIZE -dp $((LWS_GROUP_SIZE * DP_SIZE_LOCAL))']"
    text = VALUES.replace("multinode: false", "multinode: true").replace(
        "{tensor: 4}", "{tensor: 2, data: 8, dataLocal: 4}"
    )
    start, end = text.index("  - name: vllm"), text.index("prefill:")
    launch = read(text[:start] + f"  - {{name: vllm, {own}}}\n" + text[end:]).only
    assert words(launch) == ["vllm", "serve", "m", "-tp", "2", "-dp", "8"]
    assert launch.gpus_per_pod.value == 8


def test_the_entrypoint_of_the_image_is_given_the_model(read, words):
    launch = read(VALUES.replace("vllmServe", "imageDefault")).only
    assert words(launch)[:2] == ["--model", "org/model"]
    assert launch.entrypoint_of_image
    assert told(launch).model.value == "org/model"


@pytest.mark.parametrize(
    ("artifacts", "model"),
    [
        ('{name: org/name, uri: hf://"{{ .Values.modelArtifacts.name }}"}', "org/name"),
        ("{name: served, uri: pvc://claim/some/path}", "/model-cache/some/path"),
        ("{name: served, uri: pvc://claim/some/path, mountPath: /m}", "/m/some/path"),
        ("{name: served, uri: pvc+hf://claim/cache/org/model}", "org/model"),
        ("{name: org/name}", "org/name"),
    ],
)
def test_the_model_is_what_the_address_points_to(read, words, artifacts, model):
    assert words(read(VALUES.replace('{name: served, uri: "hf://org/model"}', artifacts)).only)[2] == model


def test_labels_and_types_of_accelerators_name_the_card(read):
    labelled = "replicas: 2\n  acceleratorTypes: {labelKey: a, labelValues: [NVIDIA-L4]}"
    assert read(VALUES.replace("replicas: 2", labelled)).only.gpu.value == "NVIDIA-L4"
    assert read(VALUES.replace("type: nvidia", "type: intel-gaudi")).only.gpu.value == "intel-gaudi"


def test_values_may_stand_under_the_name_of_a_dependency(read):
    nested = "llm-d:\n  modelservice:\n" + "".join(f"    {line}\n" for line in VALUES.strip().splitlines())
    assert read(nested).only.name == "values/decode"


def test_a_role_without_copies_is_none(read):
    assert read(VALUES.replace("replicas: 2", "replicas: 0")).launches == ()
