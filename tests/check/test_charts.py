"""A chart's template is read with the values beside it, and both are one deployment."""

from __future__ import annotations

from shardlint.check import Settings, read
from shardlint.findings import Unknown
from shardlint.text import Library, Source

TEMPLATE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "chat.name" . }}}
spec:
  replicas: {{ .Values.replicas }}
  template:
    spec:
      containers:
        - name: vllm
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          args:
            - --model={{ .Values.model }}
            - --tensor-parallel-size
            - {{ .Values.tp | quote }}
            {{- with .Values.length }}
            - --max-model-len={{ . }}
            {{- end }}
            {{- range .Values.extraArgs }}
            - {{ . }}
            {{- end }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
"""
VALUES = """\
replicas: 2
image: {repository: vllm/vllm-openai}
model: org/model
tp: 4
extraArgs: [--enforce-eager, --max-num-seqs=8]
resources:
  limits:
    nvidia.com/gpu: 4
"""
FILES = {
    "chat/templates/chat.yaml": TEMPLATE,
    "chat/values.yaml": VALUES,
    "chat/Chart.yaml": "name: chat\nappVersion: v0.33.0\n",
}


class Folder(Library):
    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def sibling(self, path: str) -> Source | Unknown:
        return Source(path, self.files[path]) if path in self.files else Unknown(f"there is no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown("nothing")


def deployments(*paths: str, files: dict[str, str] = FILES):
    sources = [Source(path, files[path]) for path in paths]
    return read(sources, Folder(files), Settings()).deployments


def test_a_template_alone_is_read_with_the_values_beside_it() -> None:
    (one,) = deployments("chat/templates/chat.yaml")
    assert one.form == "k8s-deployment"
    assert (one.model.value, one.image_tag.value, one.engine_version.value) == ("org/model", "v0.33.0", "0.33.0")
    tensor = one.knobs["tensor_parallel_size"]
    assert (tensor.value, tensor.span.path, tensor.span.line) == (4, "chat/values.yaml", 4)
    assert (one.gpus_per_pod.value, one.gpus_per_pod.span.path, one.gpus_per_pod.span.line) == (
        4,
        "chat/values.yaml",
        8,
    )
    assert one.replicas.value == 2 and one.knobs["max_num_seqs"].value == 8
    assert "max_model_len" not in one.knobs  # its branch is not there


def test_chart_and_values_are_one_deployment_and_the_values_alone_another() -> None:
    assert [one.form for one in deployments(*sorted(FILES))] == ["k8s-deployment"]
    (alone,) = deployments("chat/values.yaml")
    assert alone.form == "helm-values"


def test_without_values_it_stays_a_template() -> None:
    files = {"chat/templates/chat.yaml": TEMPLATE}
    (one,) = deployments("chat/templates/chat.yaml", files=files)
    assert isinstance(one.knobs["tensor_parallel_size"], Unknown) and isinstance(one.model, Unknown)


def test_a_file_in_no_folder_of_templates_has_no_chart() -> None:
    files = {"chat/other/chat.yaml": TEMPLATE, "chat/values.yaml": VALUES}
    (one,) = deployments("chat/other/chat.yaml", files=files)
    assert isinstance(one.model, Unknown)
