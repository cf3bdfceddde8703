import pytest

from shardlint.findings import Located, Unknown


def deployment(container: str, pod: str = "", spec: str = "") -> str:
    """A Deployment in flow style, so that tests show only what they are about."""
    return f"kind: Deployment\nmetadata: {{name: llm}}\nspec: {{{spec} template: {{spec: {{{pod} containers: [{{name: main, {container}}}]}}}}}}\n"


def test_arguments_are_added_to_the_command(read, words):
    got = read(deployment('command: [vllm, serve], args: ["org/model", "--tensor-parallel-size", "4"]'))
    assert got.form == "k8s-deployment"
    assert words(got.only) == ["vllm", "serve", "org/model", "--tensor-parallel-size", "4"]
    assert not got.only.entrypoint_of_image
    assert got.cut(got.only.argv[4]) == "4"
    assert got.cut(got.only.at) == "vllm"


def test_arguments_alone_follow_the_entrypoint_of_the_image(read, words):
    got = read(deployment('image: "vllm/vllm-openai:v0.33.0", args: [--model=org/model]'))
    assert got.only.entrypoint_of_image
    assert words(got.only) == ["--model=org/model"]
    assert got.only.image.value == "vllm/vllm-openai:v0.33.0"


def test_a_container_without_words_stands_at_the_name_of_the_object(read):
    got = read(deployment("image: nim"))
    assert got.only.argv == () and got.only.entrypoint_of_image
    assert (got.only.name, got.cut(got.only.at)) == ("Deployment/llm", "llm")


def test_a_script_gives_one_launch_per_command(read, words):
    got = read(
        """
        kind: Deployment
        metadata: {name: llm}
        spec:
          template:
            spec:
              containers:
              - name: main
                command: [/bin/bash, -lc, --]
                args:
                - |
                  pip install flashinfer
                  vllm serve org/model \\
                    --tensor-parallel-size 2
        """
    )
    assert [words(launch) for launch in got.launches] == [
        ["pip", "install", "flashinfer"],
        ["vllm", "serve", "org/model", "--tensor-parallel-size", "2"],
    ]
    assert got.cut(got.launches[1].argv[4]) == "2"
    assert len({launch.unit for launch in got.launches}) == 1


def test_references_are_replaced_from_the_environment(read, words):
    got = read(
        deployment(
            'command: [vllm, serve, $(MODEL), "--tp=$(TP)", $(TP), "$(OTHER)", "$$HOME"], '
            'env: [{name: ORG, value: org}, {name: MODEL, value: "$(ORG)/model"}, {name: TP, value: "4"}]'
        )
    )
    assert words(got.only)[2:] == ["org/model", "--tp=4", "4", "<$(OTHER)>", "<$HOME>"]
    assert got.cut(got.only.argv[3]) == "--tp=$(TP)"
    assert got.only.argv[4].span.column > got.source.text.index('value: "4"') - got.source.text.rindex("\n", 0, -1)


def test_a_script_sees_the_environment_of_its_container(read, words):
    got = read(
        deployment(
            'command: [sh, -c, "vllm serve org/model --tp $TP --port ${PORT:-8000}"], env: [{name: TP, value: "4"}]'
        )
    )
    assert words(got.only) == ["vllm", "serve", "org/model", "--tp", "4", "--port", "8000"]


def test_references_in_a_script_are_replaced_before_the_shell_sees_them(read, words):
    got = read(deployment('command: [sh, -c, "vllm serve org/model --tp $(TP)"], env: [{name: TP, value: "4"}]'))
    assert words(got.only)[-1] == "4"


def test_values_from_elsewhere_are_unknown_with_the_reason(read, words):
    got = read(
        deployment(
            'command: [vllm, serve, "$(MODEL)", "--tp=$(TP)"], env: ['
            "{name: MODEL, valueFrom: {configMapKeyRef: {name: settings, key: model}}},"
            "{name: TP, valueFrom: {fieldRef: {fieldPath: metadata.labels.tp}}},"
            "{name: KEY, valueFrom: {secretKeyRef: {name: token, key: hf}}}]"
        )
    )
    assert words(got.only)[2:] == ["<$(MODEL)>", "<--tp=$(TP)>"]
    assert got.only.argv[2].reason == "it comes from the ConfigMap settings, which is not in this folder"
    assert got.only.argv[3].reason == "set when the pod starts, from metadata.labels.tp"
    assert got.only.env["KEY"].reason == "it comes from the Secret token"


def test_a_config_map_of_the_same_file_is_read(read, words):
    config = '---\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {TP: "8", model: org/model}\n'
    got = read(
        deployment(
            'command: [vllm, serve, "$(MODEL)", "--tp=$(X_TP)"], '
            "envFrom: [{prefix: X_, configMapRef: {name: settings}}], "
            "env: [{name: MODEL, valueFrom: {configMapKeyRef: {name: settings, key: model}}}]"
        )
        + config
    )
    assert words(got.only)[2:] == ["org/model", "--tp=8"]


def test_placeholders_outside_a_shell_are_unknown(read, words):
    got = read(
        deployment('image: "${IMAGE}", args: ["--model=${MODEL}"], resources: {limits: {nvidia.com/gpu: "${N}"}}')
    )
    assert isinstance(got.only.image, Unknown)
    assert words(got.only) == ["<--model=${MODEL}>"]
    assert isinstance(got.only.gpus_per_pod, Unknown)


def test_a_template_is_unknown(read, words):
    got = read(deployment('args: ["--model={{ .Values.model }}", "--tp=2"]'))
    assert words(got.only) == ["<--model={{ .Values.model }}>", "--tp=2"]
    assert got.only.argv[0].reason == "templated"


def test_replicas_are_kept(read):
    got = read(deployment("image: x", spec="replicas: 3,"))
    assert got.only.replicas.value == 3 and got.cut(got.only.replicas) == "3"
    assert read(deployment("image: x")).only.replicas is None


def test_containers_under_the_wrong_key_are_found(read, words):
    got = read(
        "kind: Deployment\nmetadata: {name: x}\nspec: {template: {spec: {affinity: {containers: [{args: [--tp=2]}]}}}}"
    )
    assert words(got.only) == ["--tp=2"]


def test_a_native_sidecar_is_a_launch_and_an_init_container_is_none(read, words):
    got = read(
        deployment(
            "image: client",
            pod="initContainers: [{name: get, args: [fetch]}, {name: engine, restartPolicy: Always, args: [--tp=2]}],",
        )
    )
    assert [words(launch) for launch in got.launches] == [[], ["--tp=2"]]


def test_lists_and_templates_hold_objects(read):
    item = "{kind: Deployment, metadata: {name: %s}, spec: {template: {spec: {containers: [{image: x}]}}}}"
    assert [one.name for one in read(f"kind: List\nitems: [{item % 'a'}, {item % 'b'}]").launches] == [
        "Deployment/a",
        "Deployment/b",
    ]
    assert read(f"kind: Template\nobjects: [{item % 'c'}]").only.name == "Deployment/c"


def test_other_objects_have_no_form(read):
    got = read("kind: Service\nmetadata: {name: vllm}\nspec: {ports: [{port: 80}]}\n---\n- vllm serve x\n")
    assert (got.form, got.launches) == (None, ())


def test_shapes_that_are_not_expected_are_no_launches(read):
    for spec in (
        "[1]",
        "text",
        "{template: [x]}",
        "{template: {spec: {containers: {a: b}}}}",
        "{template: {spec: {containers: [x, [y]]}}}",
    ):
        assert read(f"kind: Deployment\nmetadata: [x]\nspec: {spec}\n").launches == ()


def test_cards_of_two_containers_stay_apart(read):
    got = read(
        deployment(
            'resources: {limits: {nvidia.com/gpu: "4"}}}, {name: side, args: [x]',
        )
    )
    assert [launch.gpus_per_pod and launch.gpus_per_pod.value for launch in got.launches] == [4, None]
    assert isinstance(got.launches[0].gpus_per_pod, Located)


def test_a_script_of_a_config_map_is_read_where_it_is_run(read, words):
    got = read(
        """
        kind: Deployment
        metadata: {name: llm}
        spec: {template: {spec: {containers: [{command: [bash, /scripts/start.sh], env: [{name: TP, value: "2"}]}]}}}
        ---
        kind: ConfigMap
        metadata: {name: scripts}
        data:
          start.sh: |
            export NCCL_DEBUG=INFO
            exec vllm serve org/model --tp $TP
        """
    )
    assert words(got.launches[-1]) == ["vllm", "serve", "org/model", "--tp", "2"]
    assert got.launches[-1].env["NCCL_DEBUG"].value == "INFO"
    assert got.cut(got.launches[-1].argv[2]) == "org/model"


def test_a_script_of_elsewhere_stays_a_command(read, words):
    assert words(read(deployment("command: [bash, /scripts/start.sh]")).only) == ["bash", "/scripts/start.sh"]


def test_a_lone_string_is_split_as_it_is_meant(read, words):
    got = read(deployment('args: "--model org/model --tp 2"'))
    assert words(got.only) == ["--model", "org/model", "--tp", "2"]
    assert words(read(deployment("""command: 'sh -c "vllm serve m"'""")).only) == ["vllm", "serve", "m"]


SETTINGS = "kind: ConfigMap\nmetadata: {name: settings}\ndata: {TP: '4', MODEL: org/model}\n"


@pytest.mark.parametrize(
    "source",
    [
        "envFrom: [{configMapRef: {name: settings}}]",
        "env: [{name: TP, valueFrom: {configMapKeyRef: {name: settings, key: TP}}}]",
    ],
)
def test_a_config_map_may_stand_in_another_file_of_the_folder(read, words, source):
    text = deployment('command: [vllm, serve, m, -tp, "$(TP)"], ' + source)
    files = {"deploy/other.yaml": "kind: Service\nmetadata: {name: settings}\n", "deploy/settings.yaml": SETTINGS}
    assert words(read(text, **files).only)[-1] == "4"
    assert words(read(text, **{"elsewhere/settings.yaml": SETTINGS}).only)[-1] == "<$(TP)>"


def test_an_image_of_ones_own_without_words_is_told_by_its_variables(read):
    got = read(
        """
        kind: Deployment
        metadata: {name: own}
        spec: {template: {spec: {containers: [{image: registry/team/vllm-release:1.2, env: [
          {name: MODEL_PATH, value: /models/a}, {name: TP_SIZE, value: "2"}]}]}}}
        """
    )
    assert {entry.key.value: entry.value.value for entry in got.only.settings} == {
        "model": "/models/a",
        "tensor-parallel-size": "2",
    }
    assert got.cut(got.only.settings[1].value) == '"2"'
