import pytest

from shardlint.findings import Located, Unknown


def service(lines: str) -> str:
    indented = "\n".join(f"    {line}" for line in lines.splitlines())
    return f"services:\n  llm:\n{indented}\n"


def test_a_command_string_is_split(read, words):
    got = read(service("command: >-\n  --model org/model --speculative-config '{\"a\": 1}' -tp 2"))
    assert (got.form, got.only.name, got.only.kind) == ("docker-compose", "service/llm", "service")
    assert words(got.only) == ["--model", "org/model", "--speculative-config", '{"a": 1}', "-tp", "2"]
    assert got.only.entrypoint_of_image
    assert got.cut(got.only.argv[5]) == "2"


def test_a_folded_command_keeps_its_places(read, words):
    got = read(service("command: >\n  python -m vllm.entrypoints.openai.api_server\n  --tensor-parallel-size 4"))
    assert words(got.only) == ["python", "-m", "vllm.entrypoints.openai.api_server", "--tensor-parallel-size", "4"]
    assert got.cut(got.only.argv[3]) == "--tensor-parallel-size"
    assert got.only.argv[3].span.line == 5


def test_a_list_is_taken_as_it_stands(read, words):
    got = read(service('entrypoint: [vllm, serve]\ncommand: ["org/model name", --tp=2]'))
    assert words(got.only) == ["vllm", "serve", "org/model name", "--tp=2"]
    assert not got.only.entrypoint_of_image


def test_a_shell_in_the_entrypoint_is_read(read, words):
    got = read(service('entrypoint: >\n  /bin/bash -c "pip install x && vllm serve org/model --tp 2"'))
    assert [words(launch)[0] for launch in got.launches] == ["pip", "vllm"]
    assert got.cut(got.launches[1].argv[-1]) == "2"


def test_a_service_without_a_command_is_a_launch(read):
    got = read(service("image: nim"))
    assert got.only.argv == () and got.cut(got.only.at) == "llm"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("${TP:-4}", "4"),
        ("${TP-4}", "4"),
        ("${A:-${B:-4}}", "4"),
        ("x${TP:-4}y", "x4y"),
        ("$$TP", "$TP"),
        ("$${TP}", "${TP}"),
        ("${TP}", "<${TP}>"),
        ("$TP", "<$TP>"),
        ("${TP:?say it}", "<${TP:?say it}>"),
        ("a${TP}b", "<a${TP}b>"),
        ("${A:-${B}}", "<${B}>"),
        ("100$", "100$"),
        ("${", "${"),
        ("${SET}", "one"),
        ("${SET:-two}", "one"),
        ("${SET:+two}", "two"),
        ("${EMPTY:-two}", "two"),
        ("${EMPTY-two}", ""),
    ],
)
def test_variables_are_replaced_by_the_rules_of_compose(read, words, text, word):
    got = read(service(f"command: ['{text}']"), **{"deploy/.env": "SET=one\nEMPTY=\n"})
    assert words(got.only)[0] == word


def test_a_default_stands_where_it_is_written(read):
    got = read(service("command: --tp ${TP:-16}"))
    assert (got.only.argv[1].value, got.cut(got.only.argv[1])) == ("16", "16")


def test_what_is_not_set_says_so(read):
    assert read(service("command: [$TP]")).only.argv[0].reason == "$TP is not set in this file"


def test_the_environment_is_read_as_mapping_and_as_list(read):
    mapping = read(service("environment: {A: one, B: 2, C: null, D: '${X:-y}'}")).only.env
    listed = read(service("environment: [A=one, B=2, C, 'D=${X:-y}', 'E=a=b']")).only.env
    for env in (mapping, listed):
        assert [env[name].value for name in "ABD"] == ["one", "2", "y"]
        assert isinstance(env["C"], Unknown)
    assert listed["E"].value == "a=b"


def test_a_script_sees_the_environment(read, words):
    got = read(service("environment: [TP=4]\nentrypoint: [sh, -c]\ncommand: ['vllm serve m --tp $$TP']"))
    assert words(got.only)[-1] == "4"


def test_files_of_variables_are_read_and_give_way(read):
    got = read(
        service("env_file: [a.env, {path: b.env}, gone.env]\nenvironment: {B: mine}"),
        **{"deploy/a.env": "A=1\nB=2\n# C=3\n", "deploy/b.env": "export D='x y' # note\n"},
    )
    assert {name: word.value for name, word in got.only.env.items()} == {"A": "1", "B": "mine", "D": "x y"}


RESERVED = "deploy: {resources: {reservations: {devices: [%s]}}}"


@pytest.mark.parametrize(
    ("lines", "cards"),
    [
        (RESERVED % "{driver: nvidia, count: 2, capabilities: [gpu]}", 2),
        (RESERVED % "{driver: nvidia, device_ids: ['0', '3'], capabilities: [gpu]}", 2),
        (RESERVED % "{capabilities: [[gpu]], count: 1}", 1),
        (RESERVED % "{driver: cdi, device_ids: ['nvidia.com/gpu=0'], capabilities: [gpu]}", 1),
        (RESERVED % "{driver: nvidia, count: all, capabilities: [gpu]}", "all"),
        (RESERVED % "{driver: nvidia, capabilities: [gpu]}", "all"),
        (RESERVED % "{driver: cdi, device_ids: ['nvidia.com/gpu=all'], capabilities: [gpu]}", "all"),
        (RESERVED % "{driver: x, count: 2, capabilities: [tpu]}", None),
        ("gpus: all", "all"),
        ("gpus: [{driver: nvidia, count: 2}]", 2),
        ("devices: [nvidia.com/gpu=0, nvidia.com/gpu=1]", 2),
        ("devices: [/dev/kfd, /dev/dri]", "all"),
        ("devices: [/dev/kfd, '/dev/dri/renderD128:/dev/dri/renderD128']", 1),
        ("devices: [/dev/snd]", None),
        ("runtime: nvidia", "all"),
        ("runtime: nvidia\nenvironment: [NVIDIA_VISIBLE_DEVICES=all]", "all"),
        ("runtime: nvidia\nenvironment: ['NVIDIA_VISIBLE_DEVICES=0,1']", 2),
        ("environment: ['CUDA_VISIBLE_DEVICES=0,1']", 2),
        ("environment: [CUDA_VISIBLE_DEVICES=2]", 1),
        ("gpus: all\nenvironment: ['CUDA_VISIBLE_DEVICES=${GPU:-0}']", 1),
        ("gpus: all\nenvironment: ['CUDA_VISIBLE_DEVICES=']", "all"),
        (RESERVED % "{device_ids: ['2', '3'], capabilities: [gpu]}" + "\nenvironment: {CUDA_VISIBLE_DEVICES: '0'}", 1),
        ("image: x", None),
    ],
)
def test_cards_are_counted(read, lines, cards):
    got = read(service(lines)).only.gpus_per_pod
    if cards == "all":
        assert isinstance(got, Unknown) and got.reason == "all cards of the host, whose number is not in this file"
    else:
        assert (got.value if isinstance(got, Located) else got) == cards


def test_cards_stand_where_they_are_written(read):
    got = read(service(RESERVED % "{driver: nvidia, device_ids: ['0', '1'], capabilities: [gpu]}"))
    assert got.cut(got.only.gpus_per_pod) == "['0', '1']"


def test_anchors_and_merge_keys_are_followed(read):
    got = read("x-gpu: &gpu\n  gpus: [{driver: nvidia, count: 4}]\n" + service("<<: *gpu\ncommand: [x]"))
    assert got.only.gpus_per_pod.value == 4


def test_a_service_takes_what_it_does_not_say_from_the_one_that_it_extends(read, words):
    got = read(
        "services:\n"
        "  base: {image: a, command: [x], environment: {A: 1, B: 1}}\n"
        "  llm: {extends: {service: base}, command: [y], environment: {B: 2}}\n"
        "  far: {extends: {file: other.yaml, service: base}}\n"
        "  loop: {extends: loop, command: [z]}\n",
        **{"deploy/other.yaml": "services: {base: {command: [far]}}"},
    )
    llm, far, loop = got.launches[1:]
    assert (words(llm), llm.image.value) == (["y"], "a")
    assert {name: word.value for name, word in llm.env.items()} == {"A": "1", "B": "2"}
    assert (words(far), words(loop)) == (["far"], ["z"])


def test_replicas_are_kept(read):
    assert read(service("deploy: {replicas: 2}")).only.replicas.value == 2
    assert read(service("scale: 3")).only.replicas.value == 3


@pytest.mark.parametrize(
    "text", ["services: [a]", "services: {a: b}", "services:", "apiVersion: v1\nservices: {a: {image: x}}"]
)
def test_other_files_have_no_form(read, text):
    assert read(text).form is None
