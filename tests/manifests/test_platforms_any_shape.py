"""Whatever the files of Ray and of serving platforms hold, reading them raises nothing."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint import engines, manifests
from shardlint.servers import assemble
from shardlint.text.documents import documents
from shardlint.text.source import Library, Source

HEADS = [
    {"run": "vllm serve m", "num_nodes": 2},
    {"type": "service", "commands": ["vllm serve m"], "image": "x"},
    {"resources": {}, "model_name": "x", "docker_server": {}},
    {"trt_llm": {}, "model_metadata": {}, "resources": {"accelerator": "H100"}},
    {"requirements": ["vllm==1"], "model_name": "x", "resources": {}},
    {"handler": {"vllm_engine_config": {}}},
    {"$schema": "azureml", "environment_variables": {"VLLM_ARGS": "-tp 2"}},
    {"PrimaryContainer": {}, "Resources": {}},
    {"deployment": {"model": {"id": "m"}, "vllm": {}}},
    {"model": {"model_id": "m"}, "variants": {}},
    {"tp_size": 2, "kv_cache_config": {}},
    {"context_servers": {}, "generation_servers": {}},
    {"test_cases": [], "deployment": [], "templates": [], "config": [], "routing": {}},
    {"applications": [{"import_path": "vllm:a", "args": {}}]},
    {"model_loading_config": {"model_id": "m"}},
    {"kind": "RayService", "spec": {"serveConfigV2": {"applications": [{}]}, "rayClusterConfig": {}}},
    {"kind": "RayJob", "spec": {"entrypoint": "vllm serve m", "rayClusterSpec": {}, "runtimeEnvYAML": "pip: [x]"}},
    {"kind": "RayCluster", "spec": {"headGroupSpec": {}, "workerGroupSpecs": []}},
    {"kind": "InferenceEndpointConfig", "spec": {"worker": {}, "instanceType": "x"}},
]
KEYS = [
    "accelerators", "resources", "any_of", "envs", "image_id", "service", "gpu", "count", "name", "memory", "env",
    "replicas", "nodes", "accelerator", "start_command", "build", "runtime", "patch_kwargs", "engine_args",
    "weights", "source", "model_path", "vllm_engine_config", "deviceIds", "environment", "image", "Environment",
    "Properties", "Type", "vllm", "container", "version", "base_args", "tp", "extra_args", "server_cmd",
    "server_cmd_template", "node_index", "dp_rank_start", "groups", "prefiller", "llm_configs", "engine_kwargs",
    "args", "runtime_env", "env_vars", "pip", "MODEL_ID", "TENSOR_PARALLELISM", "deployment_config", "bundles",
    "workerGroupSpecs", "template", "spec", "containers", "limits", "nvidia.com/gpu", "numOfHosts", "rayStartParams",
    "num-gpus", "llm_api_args", "tensor_parallel_size", "placement_group_config", "strategy", "environmentVariables",
]  # fmt: skip
LEAF = st.sampled_from(["", "x", "H100:8", "vllm serve $M", "${A}", "{{ b }}", "1..4", "STRICT_PACK", 0, 1, 0.5, None])
TREE = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


class Nothing(Library):
    def sibling(self, path):
        raise AssertionError(f"{path} was asked for")

    def model(self, model_id):
        raise AssertionError(f"{model_id} was asked for")


def grafted(tree, other, depth=0):
    """The tree with the other's entries hung into all of its mappings."""
    if isinstance(tree, dict):
        own = {key: grafted(value, other, depth + 1) for key, value in tree.items()}
        return {**other, **own} if isinstance(other, dict) else own if depth == 0 else other
    return [grafted(item, other, depth + 1) for item in tree] if isinstance(tree, list) else tree


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(HEADS), TREE)
def test_files_of_any_shape_are_read(head, tree):
    source = Source("any.yaml", json.dumps(grafted(head, tree)))
    (document,) = documents(source).documents
    launches = manifests.launches(document, Nothing()).launches
    for server in assemble(launches, engines.recognise):
        engines.read(server)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="option.enginemdl_=:# \\\n\tu0041x{}$", max_size=80))
def test_properties_of_any_text_are_read(text):
    source = Source("serving.properties", text)
    for document in documents(source).documents:
        for server in assemble(manifests.launches(document, Nothing()).launches, engines.recognise):
            engines.read(server)
