"""Objects and values of the operators for models with something else where a mapping or a list is expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

ROLE = {"name": "a", "replicas": 1, "template": {"spec": {"containers": [{"args": ["--tp=2"]}]}}}
GROUP = {"apiVersion": "workload.serving.volcano.sh/v1", "metadata": {"name": "x"}}
WHOLE: list[dict[str, Any]] = [
    {"kind": "StormService", "spec": {"replicas": 1, "template": {"spec": {"roles": [{**ROLE, "podGroupSize": 2}]}}}},
    {"kind": "PodSet", "spec": {"podGroupSize": 2, **ROLE}},
    {
        "kind": "RayClusterFleet",
        "spec": {
            "template": {"spec": {"headGroupSpec": ROLE, "workerGroupSpecs": [{**ROLE, "numOfHosts": 2}]}},
        },
    },
    {
        **GROUP,
        "kind": "ModelServing",
        "spec": {
            "template": {
                "roles": [
                    {"entryTemplate": ROLE["template"], "workerTemplate": ROLE["template"], "workerReplicas": 1, **ROLE}
                ]
            }
        },
    },
    {
        **GROUP,
        "kind": "ModelBooster",
        "spec": {
            "backend": {
                "type": "vLLM",
                "modelURI": "hf://org/model",
                "env": [{"name": "A", "value": "b"}],
                "workers": [{"type": "server", "pods": 1, "config": {"tensor-parallel-size": 2}, "image": "vllm"}],
            }
        },
    },
    {
        "kind": "RoleBasedGroup",
        "spec": {
            "roleTemplates": [{**ROLE, "name": "base"}],
            "roles": [
                {"name": "a", "standalonePattern": {"templateRef": {"name": "base", "patch": ROLE["template"]}}},
                {"name": "b", "leaderWorkerPattern": {"size": 2, "leaderTemplatePatch": ROLE["template"], **ROLE}},
                {"name": "c", "customComponentsPattern": {"components": [{**ROLE, "size": 2}]}},
            ],
        },
    },
    {
        "kind": "PodCliqueSet",
        "spec": {
            "template": {
                "cliques": [{"name": "a", "spec": {"replicas": 2, "podSpec": {"containers": [{"args": ["--tp=2"]}]}}}],
                "podCliqueScalingGroups": [{"name": "g", "replicas": 1, "cliqueNames": ["a"]}],
            }
        },
    },
    {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "spec": {
            "modelClaim": {"modelName": "x"},
            "backendRuntimeConfig": {"backendName": "vllm", "version": "v1", "args": ["--a"], "envs": [{"name": "A"}]},
        },
    },
    {"kind": "EndpointPickerConfig", "decode": {"tp": 2, "extra-args": "--a b", "env": {"A": "b"}}},
    {"kind": "VLLMRuntime", "spec": {"model": {"modelURL": "m"}, "vllmConfig": {"extraArgs": ["--a"]}, "replicas": 1}},
    {
        "kind": "DynamoGraphDeployment",
        "spec": {
            "envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"W": {"common-configs": ["a"]}}'}],
            "services": {
                "W": {
                    "multinode": {"nodeCount": 2},
                    "resources": {"limits": {"gpu": 1}},
                    "extraPodSpec": {"mainContainer": {"args": ["dynamo", "serve", "g:W"]}},
                }
            },
            "components": [{"name": "a", "podTemplate": ROLE["template"]}],
        },
    },
    {
        "W": {"model": "m", "common-configs": ["a"], "ServiceArgs": {"workers": 1, "resources": {"gpu": 1}}},
        "Common": {},
    },
    {
        "modelArtifacts": {"name": "m", "uri": "hf://m"},
        "multinode": True,
        "decode": {
            "replicas": 1,
            "parallelism": {"tensor": 2, "data": 4, "dataLocal": 2, "workers": 2},
            "acceleratorTypes": {"labelValues": ["a"]},
            "containers": [{"modelCommand": "vllmServe", "args": ["--a"], "resources": {"limits": {}}}],
        },
    },
    {
        "servingEngineSpec": {
            "modelSpec": [
                {
                    "name": "a",
                    "modelURL": "m",
                    "repository": "r",
                    "tag": "t",
                    "replicaCount": 1,
                    "raySpec": {"enabled": True},
                    "vllmConfig": {"tensorParallelSize": 2, "extraArgs": ["--a"]},
                    "lmcacheConfig": {"cudaVisibleDevices": "0"},
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}],
                }
            ]
        }
    },
    {
        "recipe_image_uri": "i",
        "recipe_container_env": [{"key": "a", "value": "b"}],
        "recipe_container_command_args": ["--a"],
        "recipe_raycluster_params": {"num_worker_nodes": 1},
        "deployment_group": {"deployments": [{"name": "a", "recipe": {"recipe_image_uri": "i"}}]},
    },
]
OTHERS: list[Any] = [None, "text", 0, [1, None, [], {}], {"a": 1}, "{{ .Values.x }}"]


def spoilt(whole: Any) -> Any:
    """The value with each of its parts in turn replaced by each of the others."""
    yield from OTHERS
    if isinstance(whole, dict):
        for key, value in whole.items():
            yield {other: inner for other, inner in whole.items() if other != key}
            yield from ({**whole, key: part} for part in spoilt(value))
    elif isinstance(whole, list):
        for place, value in enumerate(whole):
            yield from ([*whole[:place], part, *whole[place + 1 :]] for part in spoilt(value))


@pytest.mark.parametrize("whole", WHOLE, ids=lambda whole: str(whole.get("kind") or next(iter(whole))))
def test_nothing_is_raised_and_every_place_lies_in_the_file(read, whole) -> None:
    assert read(json.dumps(whole)).launches
    for part in spoilt(whole):
        got = read(json.dumps(part))
        assert all(got.cut(launch.at) for launch in got.launches)
