"""Objects that install a chart with values: Argo CD Applications, Flux HelmReleases, LLMKube beside them."""

from __future__ import annotations

from shardlint import manifests
from shardlint.findings import Located, Unknown
from shardlint.text import Library, Source, documents

VALUES = """\
image: {repository: vllm/vllm-openai, tag: v0.33.0}
model: org/model
extraArgs: [--tensor-parallel-size=4]
"""


def application(helm: str) -> str:
    return f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: chat}}\nspec:\n  source:\n    chart: x\n    helm:\n{helm}"


def indented(text: str, columns: int) -> str:
    return "".join(" " * columns + line for line in text.splitlines(keepends=True))


def tp(launch):
    return next(word for word in launch.argv if isinstance(word, Located) and word.value.startswith("--tensor"))


def test_an_application_with_values_as_a_mapping(read):
    got = read(application("      valuesObject:\n" + indented(VALUES, 8)))
    assert (got.form, got.only.name, got.only.kind) == ("argocd", "Application/chat", "Application")
    assert got.cut(tp(got.only)) == "--tensor-parallel-size=4"


def test_yaml_in_yaml_keeps_its_places(read):
    got = read(application("      values: |\n" + indented(VALUES, 8)))
    assert got.cut(tp(got.only)) == "--tensor-parallel-size=4"
    assert tp(got.only).span.line == 11


def test_parameters_win_over_values_and_stand_where_they_are_written(read):
    parameters = (
        "      parameters:\n      - {name: image.tag, value: v0.32.0}\n      - {name: model, value: org/other}\n"
        "      - {name: 'nodeSelector.nvidia\\.com/gpu\\.product', value: NVIDIA-L4}\n"
    )
    got = read(application("      values: |\n" + indented(VALUES, 8) + parameters))
    launch = got.only
    assert launch.image.value == "vllm/vllm-openai:v0.32.0"
    (model,) = [entry.value for entry in launch.settings if entry.key.value == "model"]
    assert (model.value, got.cut(model)) == ("org/other", "org/other")
    assert launch.gpu.value == "NVIDIA-L4"


class Nothing(Library):
    def sibling(self, path):
        return Unknown("nothing")

    def model(self, model_id):
        return Unknown("nothing")


def test_values_that_are_no_yaml_are_told_at_their_place():
    (document,) = documents(Source("app.yaml", application("      values: |\n        image: [\n"))).documents
    (problem,) = manifests.launches(document, Nothing()).problems
    assert problem.at.line == 10


RELEASE = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: llm}
spec:
  chart: {spec: {chart: app-template}}
  valuesFrom: [{kind: ConfigMap, name: base}]
  values:
    controllers:
      chat: {containers: {app: {image: {repository: vllm/vllm-openai, tag: v0.33.0}, args: [--model=org/chat]}}}
      code: {containers: {app: {image: {repository: vllm/vllm-openai, tag: v0.33.0}, args: [--model=org/code]}}}
"""
BASE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: base}
data:
  values.yaml: |
    controllers:
      chat: {replicas: 3, containers: {app: {resources: {limits: {nvidia.com/gpu: 2}}}}}
"""


def test_a_release_with_two_servers_and_values_beside_it(read):
    got = read(RELEASE, deploy__base_yaml="", **{"deploy__base.yaml": BASE})
    assert got.form == "flux-helmrelease"
    assert [launch.name for launch in got.launches] == [
        "HelmRelease/llm controllers/chat/containers/app",
        "HelmRelease/llm controllers/code/containers/app",
    ]
    chat, code = got.launches
    assert (chat.replicas.value, chat.gpus_per_pod.value, code.gpus_per_pod) == (3, 2, None)
    assert chat.gpus_per_pod.span.path == "deploy/base.yaml" and chat.gpus_per_pod.span.line == 7
    assert got.cut(chat.argv[-2] if not isinstance(chat.argv[-1], Located) else chat.argv[-1]) == "--model=org/chat"


def test_a_release_of_something_else_starts_nothing(read):
    assert not read("kind: HelmRelease\nmetadata: {name: x}\nspec: {values: {image: {repository: nginx}}}\n").launches


SERVICE = """
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec:
  modelRef: weights
  runtime: vllm
  replicas: 2
  image: vllm/vllm-openai:v0.33.0
  vllmConfig: {maxModelLen: 8192, gpuMemoryUtilization: 0.8}
  extraArgs: [--trust-remote-code]
"""
MODEL = """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata: {name: weights}
spec: {source: "hf://org/model@abc", hardware: {gpu: {count: 2}}}
"""


def test_llmkube_takes_model_and_cards_from_the_model_beside(read):
    for files in ({}, {"deploy__model.yaml": MODEL}):
        got = read(SERVICE if files else SERVICE + "---\n" + MODEL, **files)
        launch = got.only
        assert (got.form, launch.gpus_per_pod.value, launch.replicas.value) == ("llmkube", 2, 2)
        told = {entry.key.value: entry.value.value for entry in launch.settings}
        assert told == {"max-model-len": 8192, "gpu-memory-utilization": 0.8, "model": "org/model"}


def test_values_with_an_image_are_one_server_whatever_else_they_look_like(read):
    values = (
        "      valuesObject:\n"
        "        model: {name: m, huggingfaceName: org/m, dtype: auto}\n"
        "        deployment: {image: {repository: vllm/vllm-openai}, gpuMemoryUtilization: 0.9, maxModelLen: 8}\n"
        "        resources: {limits: {gpu: 1}}\n"
    )
    launch = read(application(values)).only
    assert launch.image.value == "vllm/vllm-openai" and launch.gpus_per_pod.value == 1
    assert [entry.value.value for entry in launch.settings if entry.key.value == "model"] == ["org/m"]
