"""What surrounds a command in its container: shared memory, limits, network, probes, parts of cards."""

from __future__ import annotations

import pytest

from shardlint.deployment import Container
from shardlint.findings import Located, Unknown

MIB = 2**20
DEFAULT = 64 * MIB

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: chat}}
spec:
  {spec}
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    args: [--model=org/model]
    {container}
"""
MOUNT = "volumeMounts: [{name: shm, mountPath: /dev/shm/}]"


def around(read, text: str, name: str = "m.yaml") -> Container:
    container = read(text, name).only.container
    assert container is not None
    return container


def value(maybe):
    return maybe.value if isinstance(maybe, Located) else maybe and "unknown"


@pytest.mark.parametrize(
    ("spec", "container", "size"),
    [
        ("", "", DEFAULT),
        ("hostIPC: true", "", None),
        ("hostIPC: false", "", DEFAULT),
        ("volumes: [{name: shm, emptyDir: {medium: Memory}}]", MOUNT, None),
        ("volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]", MOUNT, 2048 * MIB),
        ("volumes: [{name: shm, emptyDir: {sizeLimit: 32Mi}}]", MOUNT, None),
        ("volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: plenty}}]", MOUNT, "unknown"),
        ("volumes: [{name: other, emptyDir: {medium: Memory}}]", MOUNT, "unknown"),
        ("volumes: [{name: shm, emptyDir: {medium: Memory}}]", "", DEFAULT),
        ("{{ toYaml .Values.pod }}", "", "unknown"),
    ],
)
def test_shared_memory_of_a_pod(read, spec: str, container: str, size: object) -> None:
    assert value(around(read, POD.format(spec=spec, container=container)).shared_memory) == size


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("", DEFAULT),
        ("ipc: host", None),
        ("ipc: private", DEFAULT),
        ("ipc: $MODE", "unknown"),
        ("shm_size: 16gb", 16 * 1024 * MIB),
        ("shm_size: 1048576", MIB),
        ("shm_size: " + "9" * 400, "unknown"),
        ("tmpfs: ['/dev/shm:size=8g']", None),
        ("volumes: ['/dev/shm:/dev/shm']", None),
        ("volumes: [{type: tmpfs, target: /dev/shm}]", None),
    ],
)
def test_shared_memory_of_a_service(read, line: str, size: object) -> None:
    text = f"services:\n  chat:\n    image: vllm/vllm-openai:v0.33.0\n    command: --model org/model\n    {line}\n"
    assert value(around(read, text, "compose.yaml").shared_memory) == size


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("--gpus all", DEFAULT),
        ("--ipc=host", None),
        ("--ipc host", None),
        ("--shm-size=1g", 1024 * MIB),
        ("--shm-size 1g --shm-size 2g", 2048 * MIB),
        ("--mount type=tmpfs,destination=/dev/shm", None),
        ("$EXTRA_ARGS", "unknown"),
        ("$EXTRA_ARGS --shm-size=1g", 1024 * MIB),
    ],
)
def test_shared_memory_of_docker_run(read, options: str, size: object) -> None:
    command = f"docker run {options} vllm/vllm-openai:v0.33.0 --model org/model\n"
    assert value(around(read, command, "serve.sh").shared_memory) == size


def test_a_bare_host_has_no_container(read) -> None:
    assert read("vllm serve org/model -tp 2\n", "serve.sh").only.container is None


def test_a_quadlet_says_it_by_keys_of_its_own(read) -> None:
    unit = "[Container]\nImage=vllm/vllm-openai:v0.33.0\nExec=--model org/model\nShmSize=8g\nNetwork=host\n"
    container = around(read, unit, "vllm.container")
    assert (value(container.shared_memory), value(container.host_network)) == (8192 * MIB, True)


def test_the_rest_of_a_pod(read) -> None:
    container = around(
        read,
        POD.format(
            spec="hostNetwork: true",
            container="resources: {limits: {memory: 5000Mi, nvidia.com/mig-1g.10gb: 4}}\n"
            "    livenessProbe: {httpGet: {path: /health}, initialDelaySeconds: 60, periodSeconds: 5}\n"
            "    startupProbe: {exec: {command: [nvidia-smi]}, failureThreshold: 30}",
        ),
    )
    assert (value(container.memory_limit), value(container.host_network)) == (5000 * MIB, True)
    assert value(container.shared_cards) == "nvidia.com/mig-1g.10gb: 4"
    assert container.liveness is not None and container.startup is not None
    assert (value(container.liveness.seconds), container.liveness.asks_server) == (75, True)
    assert container.liveness.reckoning == "60 s + 3 x 5 s = 75 s"
    assert (value(container.startup.seconds), container.startup.asks_server) == (300, False)


def test_an_operator_that_mounts_memory_leaves_only_what_is_written(read) -> None:
    graph = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    decode:
      resources: {limits: {gpu: "2"}}
      livenessProbe: {httpGet: {path: /live, port: 9090}, failureThreshold: 1}
      extraPodSpec:
        mainContainer: {image: vllm/vllm-openai:v0.33.0, args: [--model=org/model]}
"""
    container = around(read, graph)
    assert container.shared_memory is None
    assert container.liveness is not None and value(container.liveness.seconds) == 10


def test_a_probe_with_a_number_that_is_a_template(read) -> None:
    container = around(
        read,
        POD.format(spec="", container="livenessProbe: {httpGet: {path: /}, periodSeconds: '{{ .Values.period }}'}"),
    )
    assert container.liveness is not None and isinstance(container.liveness.seconds, Unknown)


@pytest.mark.parametrize(
    ("spec", "limits", "shared"),
    [
        ("", "nvidia.com/gpu: 2", None),
        ("", "nvidia.com/gpu.shared: 2", "nvidia.com/gpu.shared: 2"),
        ("", "{nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50}", "nvidia.com/gpumem-percentage: 50"),
        ("", "{nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 100}", None),
        (
            "nodeSelector: {cloud.google.com/gke-gpu-sharing-strategy: time-sharing}",
            "nvidia.com/gpu: 2",
            "cloud.google.com/gke-gpu-sharing-strategy: time-sharing",
        ),
        (
            "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb}",
            "nvidia.com/gpu: 2",
            "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        ),
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}", "nvidia.com/gpu: 2", None),
    ],
)
def test_cards_that_are_parts_of_cards(read, spec: str, limits: str, shared: str | None) -> None:
    limits = limits if limits.startswith("{") else f"{{{limits}}}"
    container = around(read, POD.format(spec=spec, container=f"resources: {{limits: {limits}}}"))
    assert value(container.shared_cards) == shared


QUOTA = """\
apiVersion: {version}
kind: {kind}
metadata: {{name: gpus}}
spec: {spec}
---
"""


@pytest.mark.parametrize(
    ("kind", "spec", "cards"),
    [
        ("ResourceQuota", "{hard: {requests.nvidia.com/gpu: '8', cpu: 4}}", 8),
        ("ResourceQuota", "{hard: {cpu: 4}}", None),
        ("NodePool", "{limits: {nvidia.com/gpu: 4}}", 4),
        ("NodePool", "{limits: {nvidia.com/gpu: $GPUS}}", "unknown"),
        (
            "ClusterQueue",
            "{resourceGroups: [{flavors: [{resources: [{name: nvidia.com/gpu, nominalQuota: 3}]},"
            " {resources: [{name: nvidia.com/gpu, nominalQuota: 5}, {name: cpu, nominalQuota: 9}]}]}]}",
            8,
        ),
        ("ConfigMap", "{limits: {nvidia.com/gpu: 4}}", None),
    ],
)
def test_the_cards_that_a_file_allows(read, kind: str, spec: str, cards: object) -> None:
    quota = QUOTA.format(version="v1", kind=kind, spec=spec)
    assert value(around(read, quota + POD.format(spec="", container="")).card_quota) == cards


def test_services_of_the_file_are_in_the_environment(read) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{more}}}\n---\n"
    text = service.format(name="vllm", more="") + service.format(name="headless", more="clusterIP: None")
    pod = POD.format(spec="", container="")
    assert [value(name) for name in around(read, text + pod).services] == ["vllm"]
    assert around(read, text + POD.format(spec="enableServiceLinks: false", container="")).services == ()


def test_cards_of_limits_and_requests(read) -> None:
    resources = "resources: {{limits: {{nvidia.com/gpu: 2}}, requests: {{nvidia.com/gpu: {count}}}}}"
    unequal = around(read, POD.format(spec="", container=resources.format(count=4))).unequal_cards
    assert unequal is not None and [value(count) for count in unequal] == [2, 4]
    assert around(read, POD.format(spec="", container=resources.format(count=2))).unequal_cards is None
