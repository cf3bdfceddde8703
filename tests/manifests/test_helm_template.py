"""Charts before they are rendered: what a branch may leave out is unknown, named templates may hold a script."""

from __future__ import annotations

from shardlint import engines
from shardlint.findings import Located, Unknown

DEPLOYMENT = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: chat}
    spec:
      template:
        spec:
          containers:
          - name: vllm
            command:
            {{- if .Values.venv }}
            - /opt/venv/bin/vllm
            {{- else }}
            - vllm
            {{- end }}
            - serve
            - {{ .Values.model | quote }}
            {{- if .Values.experts }}
            - --enable-expert-parallel
            {{- end }}
            {{- if .Values.half }}
            - --dtype
            - half
            {{- end }}
            {{- with .Values.length }}
            - --max-model-len
            - {{ . | quote }}
            {{- end }}
            - --tensor-parallel-size=4
    """


def test_what_stands_in_a_branch_is_unknown_and_what_stands_outside_is_not(read):
    launch = read(DEPLOYMENT).only
    assert engines.recognise(launch) == "vllm"
    unknown = [word.spelled for word in launch.argv if isinstance(word, Unknown)]
    assert "--enable-expert-parallel" in unknown and "half" in unknown
    known = [word.value for word in launch.argv if isinstance(word, Located)]
    assert known == ["serve", "--dtype", "--max-model-len", "--tensor-parallel-size=4"]


SCRIPT = """
    {{- define "start" -}}
    {{- $path := .Values.model -}}
    echo 'Starting'
    python3 -m vllm.entrypoints.openai.api_server \\
    {{- range $key, $value := .Values.engine_args }}
    --{{ $key }}={{ $value | quote }} \\
    {{- end }}
    --model={{ $path }} \\
    --max-model-len=4096 \\
    --tensor-parallel-size={{ .Values.gpus }}
    {{- end -}}
    """


def test_a_script_of_named_templates_is_read_as_one(read, words):
    got = read(SCRIPT, path="templates/_helpers.tpl")
    launch = next(launch for launch in got.launches if engines.recognise(launch))
    assert words(launch)[:3] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]
    assert "--max-model-len=4096" in words(launch)
    assert words(launch)[-1] == "<--tensor-parallel-size={{ .Values.gpus }}>"
    assert any("range $key" in word for word in words(launch))


def test_named_templates_that_are_yaml_or_start_nothing_are_no_mistake(read):
    helpers = """
        {{- define "chart.labels" -}}
        app: {{ .Chart.Name }}
        {{- end }}
        """
    assert not read(helpers, path="templates/_helpers.tpl").launches


RAY = r"""
    kind: RayCluster
    metadata: {name: ray}
    spec:
      headGroupSpec:
        template:
          spec:
            containers:
            - name: head
              image: vllm/vllm-openai:v0.33.0
              command:
              - >-
                /bin/bash -c "
                cp /entrypoint/start.sh \$HOME/start.sh &&
                chmod +x \$HOME/start.sh &&
                \$HOME/start.sh &"
    ---
    kind: ConfigMap
    metadata: {name: script}
    data:
      start.sh: |
        ARGS=("vllm" "serve" "{{ .Values.model | quote }}" "--max-model-len" "4096")
        {{- if .Values.tp }}
        ARGS+=("--tensor-parallel-size" {{ .Values.tp | quote }})
        {{- end }}
        exec "${ARGS[@]}"
    """


def test_a_command_line_in_one_word_that_copies_a_script_and_runs_it(read, words):
    launches = [words(launch) for launch in read(RAY).launches]
    (served,) = [one for one in launches if one[:2] == ["vllm", "serve"]]
    assert served[3:5] == ["--max-model-len", "4096"]


BRANCHES = r"""
    kind: Deployment
    metadata: {name: chat}
    spec:
      template:
        spec:
          containers:
          - name: vllm
            command: [bash, -c]
            args:
            - |
              vllm serve {{ .Values.model }} \
                {{- if .Values.experts }}
                --enable-expert-parallel \
                {{- end }}
                {{- if .Values.length }}
                --max-model-len {{ .Values.length }} \
                --dtype=half \
                {{- end }}
                --max-num-seqs 8 {{ if gt .Values.tp 1 }} --tensor-parallel-size {{ .Values.tp }} {{ end }}
          - name: other
            command: [bash, -c]
            args:
            - |
              {{- if .Values.leader }}
              vllm serve org/model --enforce-eager
              {{- else }}
              sleep 1
              {{- end }}
    """


def test_flags_that_a_branch_adds_to_a_script_are_unknown_and_commands_in_a_branch_are_not(read, words):
    first, second = (launch for launch in read(BRANCHES).launches if engines.recognise(launch))
    unknown = {word.spelled for word in first.argv if isinstance(word, Unknown)}
    assert {"--enable-expert-parallel", "--dtype=half"} <= unknown
    known = [word.value for word in first.argv if isinstance(word, Located)]
    assert known == ["vllm", "serve", "--max-model-len", "--max-num-seqs", "8", "--tensor-parallel-size"]
    assert "--enforce-eager" in words(second)
