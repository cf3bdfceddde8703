"""Objects of KubeRay: their Serve config is YAML in YAML, their cards those of the workers."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Located, Unknown

CONFIG = """
applications:
- name: llm
  import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: m, model_source: org/model}
      engine_kwargs:
        tensor_parallel_size: 8
        pipeline_parallel_size: 2
"""
WORKER = """
- replicas: 2
  template:
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
      containers:
      - image: rayproject/ray-llm:2.46.0
        env: [{name: VLLM_USE_V1, value: "1"}]
        resources: {limits: {nvidia.com/gpu: 8}}
"""


def service(config=CONFIG, workers=WORKER):
    head = "headGroupSpec: {template: {spec: {containers: [{image: rayproject/ray-llm:2.46.0}]}}}"
    return (
        "apiVersion: ray.io/v1\nkind: RayService\nmetadata:\n  name: big\nspec:\n  serveConfigV2: |\n"
        + indent(dedent(config).lstrip("\n"), "    ")
        + f"  rayClusterConfig:\n    {head}\n    workerGroupSpecs:\n"
        + indent(dedent(workers).lstrip("\n"), "    ")
    )


def deployment(launch):
    return engines.read(Server(engines.recognise(launch), launch))


def test_the_config_inside_is_read_at_its_places(read, words):
    got = read(service())
    assert got.form == "kuberay-rayservice"
    launch = got.only
    assert launch.name == "RayService/big"
    assert got.cut(launch.at) == "big"
    assert words(launch) == ["vllm", "serve", "org/model"]
    assert got.cut(launch.argv[-1]) == "org/model"
    tensor = deployment(launch).knobs["tensor_parallel_size"]
    assert (tensor.value, got.cut(tensor)) == (8, "8")
    assert got.source.text.splitlines()[tensor.span.line - 1].strip() == "tensor_parallel_size: 8"


def test_workers_give_cards_and_pods(read):
    launch = read(service()).only
    assert launch.image.value == "rayproject/ray-llm:2.46.0"
    assert launch.gpus_per_pod.value == 8
    assert launch.gpu.value == "nvidia-h100-80gb"
    assert (launch.pods.value, launch.pods.source) == (2, "16 ranks on workers of 8 GPUs")


def test_a_config_may_be_a_mapping(read, words):
    got = read(service().replace("serveConfigV2: |", "serveConfigV2:"))
    assert words(got.only)[-1] == "org/model"


@pytest.mark.parametrize(
    ("second", "gpus", "gpu"),
    [
        ("nvidia.com/gpu: 8", 8, None),
        ("nvidia.com/gpu: 4", None, None),
        ("cpu: 4", 8, "nvidia-h100-80gb"),
    ],
)
def test_of_several_groups_of_workers_counts_what_they_agree_on(read, second, gpus, gpu):
    other = f"- template: {{spec: {{containers: [{{resources: {{limits: {{{second}}}}}}}]}}}}\n"
    launch = read(service(workers=WORKER + other)).only
    assert (launch.gpus_per_pod.value if isinstance(launch.gpus_per_pod, Located) else None) == gpus
    assert (launch.gpu.value if isinstance(launch.gpu, Located) else None) == gpu


def test_an_application_with_code_of_its_own_is_told_by_variables(read, words):
    got = read(
        service(
            """
            applications:
            - name: llm
              import_path: serve:deployment
              deployments: [{name: VLLMDeployment, num_replicas: 2}]
              runtime_env:
                pip: [vllm==0.6.6]
                env_vars: {MODEL_ID: org/model, TENSOR_PARALLELISM: "4", MAX_MODEL_LEN: $LENGTH}
            """
        )
    )
    installer, launch = got.launches
    assert words(installer)[-1] == "vllm==0.6.6"
    assert words(launch) == ["vllm", "serve", "org/model", "<serve:deployment>"]
    read_ = deployment(launch)
    assert read_.model.value == "org/model"
    assert read_.knobs["tensor_parallel_size"].value == 4
    assert isinstance(read_.knobs["max_model_len"], Unknown)
    assert read_.open_words[0].reason == "the application's code decides"
    assert launch.replicas.value == 2


def test_an_application_may_serve_several_models(read):
    got = read(
        service(
            """
            applications:
            - import_path: serve_vllm:multi_model
              runtime_env:
                env_vars: {MODEL_1_ID: org/one, MODEL_1_TENSOR_PARALLELISM: "2", MODEL_2_ID: org/two, DTYPE: half}
            """
        )
    )
    found = [deployment(launch) for launch in got.launches]
    assert [(one.name, one.model.value) for one in found] == [
        ("RayService/big/model_1", "org/one"),
        ("RayService/big/model_2", "org/two"),
    ]
    assert [one.knobs.get("tensor_parallel_size") is not None for one in found] == [True, False]
    assert [one.knobs["dtype"].value for one in found] == ["half", "half"]


def test_workers_of_several_hosts_are_known_without_sizes(read):
    config = "applications: [{import_path: serve_vllm:app}]\n"
    launch = read(service(config, WORKER.replace("- replicas: 2", "- replicas: 1\n  numOfHosts: 4"))).only
    assert launch.pods.value == 4
    assert read(service(config)).only.pods is None


def test_what_names_no_engine_is_none(read):
    config = "applications: [{name: a, import_path: images:app, runtime_env: {env_vars: {MODEL_ID: x}}}]\n"
    workers = WORKER.replace("VLLM_USE_V1", "A").replace("ray-llm", "ray")
    assert read(service(config, workers)).launches == ()


def test_several_applications_have_names_of_their_own(read):
    second = CONFIG.replace("applications:\n", "").replace("name: llm", "name: other")
    got = read(service(CONFIG + second.lstrip("\n")))
    assert [launch.name for launch in got.launches] == ["RayService/big/llm", "RayService/big/other"]
    assert len({launch.unit for launch in got.launches}) == 2


def test_a_broken_config_is_a_problem_in_its_line():
    from shardlint import manifests
    from shardlint.text.documents import documents
    from shardlint.text.source import Source

    source = Source("x.yaml", service("applications: [{\n"))
    (document,) = documents(source).documents
    (problem,) = manifests.launches(document, None).problems
    assert problem.at.line == 7 or problem.at.line == 8


def test_a_job_submits_its_entrypoint(read, words):
    got = read(
        """
        kind: RayJob
        metadata: {name: batch}
        spec:
          entrypoint: vllm serve org/model -tp 8 --pipeline-parallel-size 2
          runtimeEnvYAML: |
            pip: [vllm==0.10.0]
          rayClusterSpec:
            workerGroupSpecs:
            - replicas: 2
              template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}
        """
    )
    installer, launch = got.launches
    assert words(installer)[-1] == "vllm==0.10.0"
    assert words(launch)[:3] == ["vllm", "serve", "org/model"]
    assert (launch.name, launch.pods.value, launch.gpus_per_pod.value) == ("RayJob/batch", 2, 8)


def test_pods_of_a_cluster_start_what_they_are_told_beside_ray(read, words):
    pod = "template: {spec: {containers: [{image: vllm/vllm-openai:v0.10.0, resources: {limits: {nvidia.com/gpu: 8}}%s}]}}"
    got = read(
        f"""
        kind: RayCluster
        metadata: {{name: pair}}
        spec:
          headGroupSpec:
            {pod % ', command: [vllm, serve, org/model, -tp, "8"]'}
          workerGroupSpecs:
          - replicas: 1
            {pod % ""}
        """
    )
    (launch,) = got.launches
    assert words(launch)[:3] == ["vllm", "serve", "org/model"]
    assert launch.pods.value == 2


@pytest.mark.parametrize(
    "spec",
    ["{}", "[]", "{serveConfigV2: 3}", "{serveConfigV2: {applications: 2}, rayClusterConfig: {workerGroupSpecs: x}}"],
)
@pytest.mark.parametrize("kind", ["RayService", "RayJob", "RayCluster"])
def test_objects_of_any_shape_are_read(read, kind, spec):
    assert read(f"kind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n").launches == ()
