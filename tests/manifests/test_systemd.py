"""Units of systemd and Podman's quadlets."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def value(maybe):
    return maybe.value if isinstance(maybe, Located) else maybe and "unknown"


def test_a_units_command_goes_on_over_lines(read, words):
    got = read(
        "# a comment\n[Unit]\nDescription=x\n\n[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=0,1 'A=b c'\n"
        "ExecStart=-/opt/bin/vllm serve org/model \\\n  # left out\n    --tensor-parallel-size 2 \\\n    --port 80\n"
        "Restart=always\n",
        "etc/vllm.service",
    )
    only = got.only
    assert words(only) == ["/opt/bin/vllm", "serve", "org/model", "--tensor-parallel-size", "2", "--port", "80"]
    assert (got.form, only.name, only.kind) == ("systemd", "unit/vllm.service", "unit")
    assert got.cut(only.argv[4]) == "2"
    assert (value(only.gpus_per_pod), value(only.env["A"])) == (2, "b c")
    assert got.cut(only.at) == "/opt/bin/vllm"


def test_variables_of_the_unit_are_replaced(read, words):
    unit = (
        "[Service]\nEnvironment=MODEL=org/a\nEnvironmentFile=-/etc/llm/server.env\nExecStart=\n"
        "ExecStart=/usr/bin/vllm serve ${MODEL} -tp $TP --seed ${SEED}\n"
    )
    got = read(unit, "vllm.service", **{"server.env": "TP=4\n"})
    assert words(got.only)[2:5] == ["org/a", "-tp", "4"]
    assert isinstance(got.only.argv[-1], Unknown)


def test_specifiers_are_filled_in_later(read, words):
    got = read("[Service]\nExecStart=/usr/bin/vllm serve %i --port 80%%\n", "vllm@.service")
    assert isinstance(got.only.argv[2], Unknown) and "%i" in got.only.argv[2].reason
    assert words(got.only)[-1] == "80%"


@pytest.mark.parametrize(
    "command",
    [
        "/bin/bash -lc 'source a && exec vllm serve m'",
        '/usr/bin/env bash -c "cd /x; vllm serve m"',
        "+/usr/bin/numactl -N 0 vllm serve m",
    ],
)
def test_shells_of_a_unit_are_looked_into(read, words, command):
    assert words(read(f"[Service]\nExecStart={command}\n", "a.service").launches[-1]) == ["vllm", "serve", "m"]


def test_docker_in_a_unit_is_looked_into(read, words):
    got = read(
        "[Service]\nExecStartPre=/usr/bin/docker pull x\nExecStart=/usr/bin/docker run --rm --gpus '\"device=0,1\"' \\\n"
        "  vllm/vllm-openai:v0.33.0 --model m\n",
        "a.service",
    )
    assert (words(got.only), value(got.only.gpus_per_pod)) == (["--model", "m"], 2)


def test_a_script_named_after_an_engine_is_that_engine_with_all_else_open(read, words):
    got = read("[Service]\nExecStart=/srv/llm/vllm-server.sh\n", "a.service")
    assert words(got.only)[:2] == ["vllm", "serve"]
    assert isinstance(got.only.argv[2], Unknown) and "vllm-server.sh" in got.only.argv[2].reason
    assert words(read("[Service]\nExecStart=/srv/vllm/health-check.sh\n", "a.service").only) == [
        "/srv/vllm/health-check.sh"
    ]


QUADLET = """
[Container]
Image=docker.io/vllm/vllm-openai:v0.33.0
AddDevice=nvidia.com/gpu=0
AddDevice=nvidia.com/gpu=1
Environment=HF_HOME=/x
Volume=./serve.yaml:/serve.yaml:ro
Exec=--model org/model \\
     --tensor-parallel-size ${TP}

[Service]
Environment=TP=2
"""


def test_a_quadlet_is_a_container(read, words):
    got = read(QUADLET, "llm.container")
    only = got.only
    assert words(only) == ["--model", "org/model", "--tensor-parallel-size", "2"]
    assert only.entrypoint_of_image and value(only.image) == "docker.io/vllm/vllm-openai:v0.33.0"
    assert (value(only.gpus_per_pod), only.mounts) == (2, {"/serve.yaml": "./serve.yaml"})
    assert got.cut(only.argv[1]) == "org/model"


@pytest.mark.parametrize(
    ("line", "cards"),
    [
        ("AddDevice=nvidia.com/gpu=all", "unknown"),
        ("PodmanArgs=--gpus 2 --shm-size=8g", 2),
        ("PodmanArgs=--device nvidia.com/gpu=3", 1),
        ("ShmSize=8g", None),
    ],
)
def test_a_quadlets_cards(read, line, cards):
    got = read(f"[Container]\nImage=vllm/vllm-openai\n{line}\nExec=--model m\n", "llm.container")
    assert value(got.only.gpus_per_pod) == cards


def test_a_unit_is_known_by_its_look(read):
    assert read("; c\n[Unit]\nA=b\n[Service]\nExecStart=vllm serve m\n", "vllm").form == "systemd"
    assert read("[1, 2]\n", "x").form is None
