"""Whatever an operator's object holds, reading it raises nothing and every place lies in the file."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint.check.reading import read_file
from shardlint.check.settings import Settings
from shardlint.findings import Unknown
from shardlint.text.source import Library, Source

KINDS = {
    "kubeai.org/v1": ("Model",),
    "kaito.sh/v1beta1": ("Workspace", "InferenceSet", "MultiRoleInference"),
    "apps.nvidia.com/v1alpha1": ("NIMService", "NIMPipeline"),
    "serving.kserve.io/v1beta1": (
        "InferenceService", "ServingRuntime", "ClusterServingRuntime", "LLMInferenceService",
        "LLMInferenceServiceConfig",
    ),
    "ome.io/v1beta1": ("InferenceService", "ClusterServingRuntime"),
}  # fmt: skip
OBJECTS = [(version, kind) for version, kinds in KINDS.items() for kind in kinds]
KEYS = [
    "args", "baseRefs", "command", "config", "containers", "count", "data", "dataLocal", "decoderConfig", "devices",
    "draResources", "engine", "engineConfig", "env", "expert", "hf", "image", "inference", "instanceType", "leader",
    "minReplicas", "model", "modelFormat", "modelName", "multiNode", "name", "namespace", "nimCache", "parallelism",
    "partition", "pipeline", "pipelineParallelSize", "predictor", "prefill", "preset", "profile", "replicas",
    "repository", "resource", "resourceProfile", "resources", "roles", "runner", "runtime", "services", "size",
    "spec", "storage", "storageUri", "supportedModelFormats", "tag", "template", "tensor", "tolerations", "type",
    "uri", "url", "value", "worker", "workerSpec",
]  # fmt: skip
LEAF = st.sampled_from(
    ["", "x", "vllm", "$(A)", "{{ .Values.x }}", "hf://org/model", "hf://", "pvc://a", "main", "l4:8", ":", 1, 0, None]
)
TREE = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=40,
)


class Nothing(Library):
    def sibling(self, path: str) -> Unknown:
        return Unknown(f"there is no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"there is no {model_id}")


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(OBJECTS), st.dictionaries(st.sampled_from(KEYS), TREE, max_size=8))
def test_objects_of_operators_of_any_shape_are_read(kind, content):
    head = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "x"}}
    reading = read_file(Source("any.yaml", json.dumps({**content, **head, "spec": content})), Nothing(), Settings())
    assert all(deployment.at.end_line == 1 for deployment in reading.deployments)
    assert not reading.problems
