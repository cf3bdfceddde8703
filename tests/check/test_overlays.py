"""Base and overlay in one folder are one deployment; each file still stands alone when only it is named."""

from __future__ import annotations

from shardlint.check import Settings, read
from shardlint.findings import Unknown
from shardlint.text import Library, Source

BASE = """\
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
      - {name: main, image: "vllm/vllm-openai:v0.33.0", args: [--model=org/m], resources: {limits: {nvidia.com/gpu: 1}}}
"""
OVERLAY = """\
resources: [../base/deployment.yaml]
patches:
- patch: |
    kind: Deployment
    metadata: {name: llm}
    spec: {template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 4}}}]}}}
"""
FILES = {"base/deployment.yaml": BASE, "over/kustomization.yaml": OVERLAY}


class Folder(Library):
    def sibling(self, path: str) -> Source | Unknown:
        return Source(path, FILES[path]) if path in FILES else Unknown(f"there is no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown("nothing")


def cards(*paths: str) -> list[int]:
    report = read([Source(path, FILES[path]) for path in paths], Folder(), Settings())
    return [deployment.gpus_per_pod.value for deployment in report.deployments]


def test_a_folder_has_the_deployment_once() -> None:
    assert cards("base/deployment.yaml", "over/kustomization.yaml") == [4]


def test_each_file_alone_has_it() -> None:
    assert cards("base/deployment.yaml") == [1]
    assert cards("over/kustomization.yaml") == [4]
