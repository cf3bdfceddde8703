"""Kustomizations: what an overlay makes of its base is one server, whose values stand where they were written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shardlint import manifests
from shardlint.findings import Located, Unknown
from shardlint.text import Library, Source, documents

BASE = {
    "base/kustomization.yaml": "resources: [deployment.yaml, https://example.invalid/x.yaml]\n",
    "base/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, labels: {app: llm}}
spec:
  replicas: 1
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      nodeSelector: {gpu.product: replaced}
      containers:
      - name: server
        image: vllm/vllm-openai:v0.8.0
        args: ["--model=$(MODEL_ID)", "--tensor-parallel-size=$(TP)", --max-num-seqs=8]
        envFrom: [{configMapRef: {name: runtime}}]
        env: [{name: KEEP, value: "1"}, {name: TP, value: "1"}]
        resources: {limits: {nvidia.com/gpu: 1}}
      - {name: sidecar, image: busybox, args: ["--model=no"]}
""",
}
OVERLAY = """\
kind: Kustomization
apiVersion: kustomize.config.k8s.io/v1beta1
namePrefix: h100-
resources: [../base]
configMapGenerator:
- name: runtime
  envs: [runtime.env]
  literals: [EXTRA=1]
patches:
- path: patch.yaml
- target: {kind: Deploy.*, name: llm}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --max-model-len=4096}
    - {op: remove, path: /spec/template/spec/containers/0/args/2}
    - {op: replace, path: /spec/template/spec/nodeSelector/gpu.product, value: NVIDIA-H100}
images: [{name: vllm/vllm-openai, newName: reg.example/vllm-openai, newTag: v0.33.0}]
replicas: [{name: llm, count: 3}]
"""
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
      - name: server
        env: [{name: TP, value: "8"}]
        resources: {limits: {nvidia.com/gpu: 8}}
      - {name: sidecar, $patch: delete}
"""
FILES = {**BASE, "over/runtime.env": "# a comment\nMODEL_ID=org/model\n", "over/patch.yaml": PATCH}


class Folder(Library):
    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def sibling(self, path: str) -> Source | Unknown:
        return Source(path, self.files[path]) if path in self.files else Unknown(f"there is no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown("nothing")


def built(overlay: str, files: dict[str, str]):
    (document,) = documents(Source("over/kustomization.yaml", overlay)).documents
    return manifests.launches(document, Folder(files))


def values(launch) -> list[str]:
    return [word.value for word in launch.argv if isinstance(word, Located)]


def cut(place, files: dict[str, str]) -> tuple[str, str]:
    line = files[place.span.path].splitlines()[place.span.line - 1]
    return place.span.path, line[place.span.column - 1 : place.span.end_column - 1]


def test_base_and_overlay_are_one_server():
    found = built(OVERLAY, FILES)
    (launch,) = found.launches
    files = {**FILES, "over/kustomization.yaml": OVERLAY}
    assert (found.form, launch.form, launch.name) == ("kustomize", "kustomize", "Deployment/llm")
    assert values(launch) == ["--model=org/model", "--tensor-parallel-size=8", "--max-model-len=4096"]
    assert launch.image.value == "reg.example/vllm-openai:v0.33.0"
    assert (launch.gpus_per_pod.value, launch.replicas.value, launch.gpu.value) == (8, 3, "NVIDIA-H100")
    assert launch.env["KEEP"].value == "1" and launch.env["EXTRA"].value == "1"
    assert cut(launch.gpus_per_pod, files) == ("over/patch.yaml", "8")
    assert cut(launch.replicas, files) == ("over/kustomization.yaml", "3")
    assert cut(launch.gpu, files) == ("over/kustomization.yaml", "NVIDIA-H100")
    assert cut(launch.argv[2], files) == ("over/kustomization.yaml", "--max-model-len=4096")
    assert cut(launch.argv[1], files)[0] == "base/deployment.yaml"
    assert launch.env["MODEL_ID"].span.path == "over/runtime.env"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine")
def test_it_is_what_kubectl_builds(tmp_path: Path):
    local = {**FILES, "base/kustomization.yaml": "resources: [deployment.yaml]\n", "over/kustomization.yaml": OVERLAY}
    for name, text in local.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    run = subprocess.run(["kubectl", "kustomize", tmp_path / "over"], capture_output=True, text=True, check=True)
    rendered = documents(Source("out.yaml", run.stdout)).documents
    (theirs,) = (one for document in rendered for one in manifests.launches(document, Folder({})).launches)
    (ours,) = built(OVERLAY, local).launches
    assert values(ours) == values(theirs)
    for field in ("image", "gpus_per_pod", "replicas", "gpu"):
        assert getattr(ours, field).value == getattr(theirs, field).value


@pytest.mark.parametrize(
    ("overlay", "wanted"),
    [
        ("patchesStrategicMerge: [patch.yaml]\nresources: [../base]\n", 8),
        ("patchesJson6902:\n- target: {kind: Deployment, name: llm}\n  path: ops.yaml\nresources: [../base]\n", 4),
        ("components: [../part]\nresources: [../base]\n", 2),
        ("patches: [{path: missing.yaml}]\nresources: [../base]\n", 1),
        ("patches: [{path: patch.yaml, target: {kind: Deployment, name: other}}]\nresources: [../base]\n", 1),
        ("patches: [{path: patch.yaml, target: {labelSelector: app=llm}}]\nresources: [../base]\n", 8),
    ],
)
def test_every_way_to_write_a_patch(overlay: str, wanted: int):
    path = "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"
    files = {
        **FILES,
        "over/ops.yaml": f"- {{op: replace, path: {path}, value: 4}}\n- {{op: add, path: /a/b/9/c, value: 1}}\n",
        "part/kustomization.yaml": "kind: Component\npatches: [{path: two.yaml}]\n",
        "part/two.yaml": PATCH.replace("gpu: 8", "gpu: 2"),
    }
    launches = built(overlay, files).launches
    assert launches[0].gpus_per_pod.value == wanted


def test_a_field_of_one_object_replaces_that_of_others():
    overlay = """\
resources: [../base]
configMapGenerator: [{name: runtime, literals: [IMAGE=vllm/vllm-openai:v0.33.0]}]
replacements:
- source: {kind: ConfigMap, name: runtime, fieldPath: data.IMAGE}
  targets:
  - select: {kind: Deployment}
    fieldPaths: ["spec.template.spec.containers.[name=server].image", "spec.nothing.here"]
"""
    assert built(overlay, FILES).launches[0].image.value == "vllm/vllm-openai:v0.33.0"


@pytest.mark.parametrize(
    "text",
    [
        "resources: [../base]\nnamespace: x\n",  # changes nothing that is read here
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\npatches: []\nresources: [../base]\n",
        "resources: [../over, ../over, ../over, ../over, ../over, ../over]\npatches: []\n",  # circles
        "patches: nonsense\nimages: {a: b}\nreplacements: [1]\nconfigMapGenerator: [x]\n",
    ],
)
def test_what_builds_nothing(text: str):
    assert built(text, {**FILES, "over/kustomization.yaml": text}).launches == ()
