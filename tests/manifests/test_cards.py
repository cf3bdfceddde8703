"""How many cards and which, as pod specs say it."""

import pytest

from shardlint.findings import Located, Unknown


def pod(resources: str = "{}", env: str = "", spec: str = "") -> str:
    return f"kind: Pod\nmetadata: {{name: p}}\nspec: {{{spec} containers: [{{args: [x], resources: {resources}, env: [{env}]}}]}}\n"


def value(word):
    return word.value if isinstance(word, Located) else word


@pytest.mark.parametrize(
    ("resources", "cards"),
    [
        ("{limits: {nvidia.com/gpu: 8}}", 8),
        ('{limits: {nvidia.com/gpu: "8", cpu: "4"}}', 8),
        ("{requests: {amd.com/gpu: 2}}", 2),
        ("{limits: {nvidia.com/gpu: 4}, requests: {nvidia.com/gpu: 2}}", 4),
        ("{limits: {memory: 1Gi}, requests: {habana.ai/gaudi: 2}}", 2),
        ("{limits: {nvidia.com/mig-1g.10gb: 2, nvidia.com/mig-2g.20gb: 1}}", 3),
        ("{limits: {gpu.intel.com/xe: 1}}", 1),
        ("{limits: {gpu.intel.com/xe_monitoring: 1}}", None),
        ("{limits: {google.com/tpu: 4}}", 4),
        ('{limits: {huawei.com/Ascend910: "16"}}', 16),
        ("{limits: {huawei.com/ascend-1980: 2}}", 2),
        ("{limits: {volcano.sh/vgpu-number: 2, volcano.sh/vgpu-memory: 8000}}", 2),
        ("{limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30}}", 1),
        ("{limits: {nvidia.com/gpu: 0}}", 0),
        ("{limits: {rdma/ib: 1, memory: 80Gi}}", None),
        ("{limits: {nvidia.com/gpu: null}}", None),
        ("{limits: [a], requests: x}", None),
    ],
)
def test_resources_are_counted(read, resources, cards):
    assert value(read(pod(resources)).only.gpus_per_pod) == cards


def test_a_count_stands_where_it_is_written(read):
    got = read(pod('{limits: {nvidia.com/gpu: "8"}}'))
    assert got.cut(got.only.gpus_per_pod) == '"8"'


@pytest.mark.parametrize("resources", ["{limits: {nvidia.com/gpu: 0.5}}", "{limits: {koordinator.sh/gpu: 50}}"])
def test_shares_are_unknown(read, resources):
    assert isinstance(read(pod(resources)).only.gpus_per_pod, Unknown)


def test_visible_devices_narrow_what_the_container_has(read):
    got = read(pod("{limits: {nvidia.com/gpu: 8}}", '{name: CUDA_VISIBLE_DEVICES, value: "0,1,2,3"}'))
    assert got.only.gpus_per_pod.value == 4
    assert got.cut(got.only.gpus_per_pod) == '"0,1,2,3"'
    more = read(pod("{limits: {nvidia.com/gpu: 1}}", '{name: CUDA_VISIBLE_DEVICES, value: "0,1"}'))
    assert more.only.gpus_per_pod.value == 1


CLAIM = """---
kind: ResourceClaimTemplate
metadata: {name: cards}
spec: {spec: {devices: {requests: [%s]}}}
"""


@pytest.mark.parametrize(
    ("requests", "cards"),
    [
        ("{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}", 2),
        ("{name: a, exactly: {deviceClassName: gpu.nvidia.com}}", 1),
        ("{name: a, deviceClassName: gpu.nvidia.com, count: 4}", 4),
        ("{name: a, exactly: {count: 2}}, {name: b, exactly: {count: 1}}", 3),
        (
            "{name: a, exactly: {count: 2}}, {name: c, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}",
            2,
        ),
    ],
)
def test_claims_of_the_same_file_are_counted(read, requests, cards):
    claims = "resourceClaims: [{name: g, resourceClaimTemplateName: cards}],"
    got = read(pod("{claims: [{name: g}]}", spec=claims) + CLAIM % requests)
    assert value(got.only.gpus_per_pod) == cards


@pytest.mark.parametrize(
    "requests", ["{name: a, exactly: {allocationMode: All}}", "{name: a, firstAvailable: [{name: x}, {name: y}]}"]
)
def test_open_claims_are_unknown(read, requests):
    claims = "resourceClaims: [{name: g, resourceClaimTemplateName: cards}],"
    got = read(pod("{claims: [{name: g}]}", spec=claims) + CLAIM % requests)
    assert isinstance(got.only.gpus_per_pod, Unknown)


def test_a_claim_of_another_file_is_unknown(read):
    got = read(pod("{claims: [{name: g}]}", spec="resourceClaims: [{name: g, resourceClaimTemplateName: far}],"))
    assert got.only.gpus_per_pod.reason == "the resource claim g is not in this file"


@pytest.mark.parametrize("name", ["compute-domain-channel", "imex-channel-0", "rdma-net"])
def test_a_claim_for_links_between_cards_is_no_card(read, name):
    claims = f"resourceClaims: [{{name: g, resourceClaimTemplateName: {name}}}],"
    got = read(pod("{limits: {nvidia.com/gpu: 4}, claims: [{name: g}]}", spec=claims))
    assert got.only.gpus_per_pod.value == 4


@pytest.mark.parametrize(
    ("selector", "card"),
    [
        ("nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("cloud.google.com/gke-accelerator: nvidia-l4", "nvidia-l4"),
        (
            "cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice, cloud.google.com/gke-tpu-topology: 2x4",
            "tpu-v6e-slice",
        ),
        ("node.kubernetes.io/instance-type: p5.48xlarge", "p5.48xlarge"),
        ("node.kubernetes.io/instance-type: p5.48xlarge, nvidia.com/gpu.product: H100", "H100"),
        ("karpenter.k8s.aws/instance-gpu-name: h100", "h100"),
        ("eks.amazonaws.com/instance-gpu-name: l40s", "l40s"),
        ("karpenter.azure.com/sku-gpu-name: A100", "A100"),
        ("gpu.nvidia.com/class: H100_NVLINK_80GB", "H100_NVLINK_80GB"),
        ("amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_OAM"),
        ("accelerator: h200", "h200"),
        ('nvidia.com/gpu: "true"', None),
        ('nvidia.com/gpu.present: "true", gpu-type: nvidia', None),
        ("nvidia.com/gpu.memory: 81559, kubernetes.io/os: linux", None),
    ],
)
def test_selectors_name_the_card(read, selector, card):
    assert value(read(pod(spec=f"nodeSelector: {{{selector}}},")).only.gpu) == card


@pytest.mark.parametrize(
    "name", ["replaced-by-kustomize", "<gpu>", "YOUR-GPU", "__GPU__", "${GPU}", "{{ .Values.gpu }}"]
)
def test_placeholders_name_no_card(read, name):
    assert isinstance(read(pod(spec=f'nodeSelector: {{accelerator: "{name}"}},')).only.gpu, Unknown)


AFFINITY = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
    "[{matchExpressions: [{key: nvidia.com/gpu.product, operator: %s, values: [%s]}]}]}}},"
)


def test_affinity_to_one_value_names_the_card(read):
    got = read(pod(spec=AFFINITY % ("In", "NVIDIA-L4")))
    assert got.only.gpu.value == "NVIDIA-L4" and got.cut(got.only.gpu) == "NVIDIA-L4"


def test_affinity_to_several_values_names_each(read):
    assert read(pod(spec=AFFINITY % ("In", "NVIDIA-L4, NVIDIA-A10"))).only.gpu.value == "NVIDIA-L4|NVIDIA-A10"
    assert read(pod(spec=AFFINITY % ("NotIn", "NVIDIA-L4"))).only.gpu is None


def test_a_resource_name_may_name_the_device(read):
    got = read(pod("{limits: {nvidia.com/mig-3g.40gb: 1}}"))
    assert got.only.gpu.value == "nvidia.com/mig-3g.40gb"
    assert read(pod("{limits: {nvidia.com/gpu: 1}}")).only.gpu is None


def test_templated_blocks_are_unknown_and_not_absent(read):
    got = read(
        "kind: Pod\nspec:\n  nodeSelector: {{ .Values.selector }}\n  containers:\n  - resources: {{ .Values.resources }}\n"
    )
    assert (got.only.gpu.reason, got.only.gpus_per_pod.reason) == ("templated", "templated")
    assert got.cut(got.only.gpu) == "{{ .Values.selector }}"


def test_a_taint_that_is_tolerated_names_the_product(read):
    taint = "tolerations: [{key: nvidia.com/gpu, operator: Equal, value: %s}],"
    assert read(pod(spec=taint % "NVIDIA-L40S-PRIVATE")).only.gpu.value == "NVIDIA-L40S-PRIVATE"
    assert read(pod(spec=taint % "present")).only.gpu is None
    selected = "nodeSelector: {accelerator: l4}, " + taint % "NVIDIA-L40S"
    assert read(pod(spec=selected)).only.gpu.value == "l4"
