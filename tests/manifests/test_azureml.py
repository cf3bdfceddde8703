"""Managed online deployments of Azure Machine Learning."""

from __future__ import annotations

import pytest
from stated_layouts import deployments, only, sizes

from shardlint.findings import Unknown

DEPLOYMENT = """
$schema: https://azuremlschemas.azureedge.net/latest/managedOnlineDeployment.schema.json
name: blue
endpoint_name: chat
environment_variables:
  MODEL_NAME: org/model
  VLLM_ARGS: "--tensor-parallel-size 2 --max-model-len=4096 --enforce-eager"
environment: {image: registry.example/vllm:1}
instance_type: Standard_NC48ads_A100_v4
instance_count: 2
"""


def test_arguments_in_a_variable_tell_the_engine(read, words):
    got = read(DEPLOYMENT)
    assert got.form == "azureml"
    deployment = only(got.launches)
    assert (deployment.name, deployment.engine, deployment.model.value) == ("deployment/blue", "vllm", "org/model")
    assert sizes(deployment)["tensor_parallel_size"] == 2
    assert got.cut(deployment.knobs["tensor_parallel_size"]) == "2"
    assert (deployment.gpu.value, deployment.replicas.value) == ("Standard_NC48ads_A100_v4", 2)


def test_an_image_with_its_own_entrypoint_tells_it_too(read):
    text = DEPLOYMENT.replace("VLLM_ARGS", "OTHER").replace("registry.example/vllm:1", "vllm/vllm-openai:v0.10.0")
    deployment = only(read(text).launches)
    assert (deployment.engine, deployment.engine_version.value) == ("vllm", "0.10.0")


def test_a_deployment_that_is_called_after_the_engine_tells_it_too(read):
    deployment = only(read(DEPLOYMENT.replace("VLLM_ARGS", "OTHER")).launches)
    assert (deployment.engine, deployment.model.value) == ("vllm", "org/model")
    other = DEPLOYMENT.replace("VLLM_ARGS", "OTHER").replace("example/vllm", "example/x")
    assert deployments(read(other).launches) == []


def test_cards_of_an_own_cluster(read):
    got = read(DEPLOYMENT + "resources: {requests: {cpu: 1, nvidia.com/gpu: 2}}\n")
    assert only(got.launches).gpus_per_pod.value == 2


def test_without_a_name_the_model_is_unknown(read):
    assert isinstance(only(read(DEPLOYMENT.replace("MODEL_NAME", "OTHER")).launches).model, Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "$schema: azureml/x\nname: a\n",
        "endpoint_name: x\ninstance_type: y\nenvironment_variables: []\n",
        "kind: X\nendpoint_name: x\ninstance_type: y\nenvironment_variables: {VLLM_ARGS: -tp 2}\n",
    ],
)
def test_what_names_no_engine_is_none(read, text):
    assert deployments(read(text).launches) == []
