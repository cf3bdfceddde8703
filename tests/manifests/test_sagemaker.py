"""SageMaker: endpoints of HyperPod, models of CloudFormation and the API, recipes."""

from __future__ import annotations

import pytest
from stated_layouts import deployments, only, sizes

from shardlint.findings import Unknown

ENDPOINT = """
apiVersion: inference.sagemaker.aws.amazon.com/v1
kind: InferenceEndpointConfig
metadata: {{name: chat}}
spec:
  instanceType: ml.p5.48xlarge
  replicas: 2
  modelSourceConfig:
    modelSourceType: huggingface
    huggingFaceModel: {{modelId: org/model}}
  worker:
    image: {image}
    resources: {{limits: {{nvidia.com/gpu: 8}}}}
    {worker}
"""


def test_a_worker_is_a_container(read):
    got = read(ENDPOINT.format(image="vllm/vllm-openai:v0.10.0", worker='args: ["--tensor-parallel-size", "8"]'))
    assert got.form == "sagemaker"
    deployment = only(got.launches)
    assert (deployment.name, deployment.model.value) == ("InferenceEndpointConfig/chat", "org/model")
    assert sizes(deployment)["tensor_parallel_size"] == 8
    assert (deployment.gpus_per_pod.value, deployment.gpu.value, deployment.replicas.value) == (8, "ml.p5.48xlarge", 2)


def test_the_arguments_model_wins(read):
    got = read(ENDPOINT.format(image="vllm/vllm-openai:v0.10.0", worker='args: ["--model", /opt/ml/model]'))
    assert only(got.launches).model.value == "/opt/ml/model"


def test_variables_are_options_of_the_lmi_container(read):
    variables = "environmentVariables: [{name: OPTION_ROLLING_BATCH, value: vllm}, {name: HF_MODEL_ID, value: a/b}]"
    got = read(
        ENDPOINT.format(
            image="1.dkr.ecr.us-west-2.amazonaws.com/djl-inference:0.32.0-lmi14.0.0-cu124",
            worker=variables + '\n    args: ["--max-model-len", "20000"]',
        )
    )
    deployment = only(got.launches)
    assert (deployment.engine, deployment.model.value) == ("vllm", "a/b")
    assert sizes(deployment) == {"max_model_len": 20000}


def test_variables_are_flags_of_the_vllm_container(read):
    got = read(
        """
        Resources:
          Chat:
            Type: AWS::SageMaker::Model
            Properties:
              PrimaryContainer:
                Image: !Sub "${Account}.dkr.ecr.us-west-2.amazonaws.com/vllm:0.11.0-gpu"
                Environment:
                  SM_VLLM_MODEL: org/model
                  SM_VLLM_TENSOR_PARALLEL_SIZE: "4"
                  SM_VLLM_ENFORCE_EAGER: "true"
                  SM_VLLM_MAX_MODEL_LEN: !Ref Length
        """
    )
    deployment = only(got.launches)
    assert (deployment.name, deployment.model.value) == ("AWS::SageMaker::Model/Chat", "org/model")
    assert sizes(deployment)["tensor_parallel_size"] == 4
    assert isinstance(deployment.knobs["max_model_len"], Unknown)
    assert not deployment.flag_problems


def test_a_request_of_the_api(read):
    got = read(
        '{"ModelName": "chat", "PrimaryContainer": {"Image": "x/huggingface-pytorch-tgi-inference:2.4.0",'
        ' "Environment": {"HF_MODEL_ID": "a/b", "SM_NUM_GPUS": "4"}}}',
        path="model.json",
    )
    deployment = only(got.launches)
    assert (deployment.engine, deployment.model.value, sizes(deployment)) == ("tgi", "a/b", {"tensor_parallel_size": 4})


def test_a_recipe_states_arguments_and_release(read):
    got = read(
        """
        name: Some model
        deployment:
          model: {id: org/model}
          instance: {type: ml.g5.12xlarge, count: 2}
          container: {type: vllm-dlc, version: 0.11.0}
          vllm:
            tensor_parallel_size: 4
            gpu_memory_utilization: 0.85
            extra_env: {SM_VLLM_MAX_MODEL_LEN: "4096"}
          hyperpod: {worker: {gpu_count: 4}}
        """
    )
    deployment = only(got.launches)
    assert (deployment.model.value, deployment.engine_version.value) == ("org/model", "0.11.0")
    assert sizes(deployment) == {"tensor_parallel_size": 4, "gpu_memory_utilization": 0.85, "max_model_len": 4096}
    assert not deployment.flag_problems
    assert (deployment.gpus_per_pod.value, deployment.gpu.value, deployment.replicas.value) == (4, "ml.g5.12xlarge", 2)


@pytest.mark.parametrize(
    "text",
    [
        "kind: InferenceEndpointConfig\nspec: {worker: []}\n",
        "Resources: {A: {Type: 'AWS::S3::Bucket'}}\n",
        "Resources: []\n",
        "Containers: [{Image: nginx}]\n",
        "deployment: {model: {id: a/b}}\n",
    ],
)
def test_what_starts_no_engine_is_none(read, text):
    assert deployments(read(text).launches) == []
