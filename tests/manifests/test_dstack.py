"""dstack: GPU specifications in all shapes, commands in one shell, and the variables that dstack sets."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.findings import Located, Unknown

SERVICE = """
type: service
name: chat
image: vllm/vllm-openai:v0.10.0
env:
  - HF_TOKEN
  - MODEL=org/model
commands:
  - export LENGTH=4096
  - |
    vllm serve $MODEL \\
      --tensor-parallel-size $DSTACK_GPUS_NUM --max-model-len $LENGTH --api-key $HF_TOKEN
resources:
  gpu: H100:8
"""


def engine(got):
    (launch,) = [launch for launch in got.launches if engines.recognise(launch)]
    return launch


def test_commands_are_one_script(read, words):
    got = read(SERVICE)
    assert got.form == "dstack"
    launch = engine(got)
    assert launch.name == "service/chat"
    assert words(launch) == [
        "vllm", "serve", "org/model", "--tensor-parallel-size", "8", "--max-model-len", "4096",
        "--api-key", "<$HF_TOKEN>",
    ]  # fmt: skip
    assert (launch.gpus_per_pod.value, launch.gpu.value) == (8, "H100")
    assert got.cut(launch.argv[2]) == "org/model"
    assert got.cut(launch.at) == "vllm"


@pytest.mark.parametrize(
    ("spec", "gpu", "count"),
    [
        ("MI300X:8", "MI300X", 8),
        ("H100", "H100", 1),
        ("24GB", None, 1),
        ("24GB..", None, 1),
        ("80GB:2", None, 2),
        ("2", None, 2),
        ("A100:80GB:2", "A100:80GB", 2),
        ("nvidia:H100:4", "H100", 4),
        ("'H100,H200:8'", "H100|H200", 8),
        ("H100:1..8", "H100", None),
        ("H100:8..", "H100", None),
        ("{name: H100, count: 8, memory: 80GB}", "H100:80GB", 8),
        ("{name: [H100, H200], count: 4}", "H100|H200", 4),
        ("{name: H100, count: {min: 1, max: 8}}", "H100", None),
        ("{memory: 80GB, count: 1..2}", None, None),
        ("{name: H100}", "H100", 1),
    ],
)
def test_cards_are_specified_in_many_shapes(read, spec, gpu, count):
    launch = engine(read(f"type: task\ncommands: [vllm serve m]\nresources:\n  gpu: {spec}\n"))
    assert (launch.gpu.value if isinstance(launch.gpu, Located) else None) == gpu
    assert (launch.gpus_per_pod.value if isinstance(launch.gpus_per_pod, Located) else None) == count


def test_nodes_of_a_task_make_one_engine(read, words):
    got = read(
        """
        type: task
        nodes: 2
        commands:
          - vllm serve m --nnodes $DSTACK_NODES_NUM --node-rank $DSTACK_NODE_RANK -tp $DSTACK_GPUS_NUM
        resources: {gpu: H100:8}
        """
    )
    launch = engine(got)
    assert launch.pods.value == 2
    assert words(launch)[3:] == ["--nnodes", "2", "--node-rank", "<$DSTACK_NODE_RANK>", "-tp", "16"]


def test_without_commands_the_image_starts_the_engine(read):
    launch = engine(read("type: service\nimage: vllm/vllm-openai:v0.10.0\nenv: {A: b}\nresources: {gpu: 24GB}\n"))
    assert launch.entrypoint_of_image
    assert launch.env["A"].value == "b"


def test_groups_of_replicas_have_commands_of_their_own(read):
    got = read(
        """
        type: service
        name: pd
        image: lmsysorg/sglang:latest
        replicas:
        - {count: 1, commands: [python -m sglang.launch_server --model-path m --tp 8], resources: {gpu: H200:8}}
        - {count: 2, commands: [python -m sglang.launch_server --model-path m --tp 4], resources: {gpu: H200:4}}
        """
    )
    assert [(launch.name, launch.gpus_per_pod.value, launch.replicas.value) for launch in got.launches] == [
        ("service/pd/0", 8, 1),
        ("service/pd/1", 4, 2),
    ]


def test_a_range_of_replicas_is_no_number(read):
    launch = engine(read("type: service\nreplicas: 1..4\ncommands: [vllm serve m]\n"))
    assert isinstance(launch.replicas, Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "type: fleet\ncommands: [vllm serve m]\n",
        "type: service\nport: 80\n",
        "type: [service]\nimage: x\n",
        "type: service\ncommands: x\n",
    ],
)
def test_other_files_start_nothing(read, text):
    assert [launch for launch in read(text).launches if engines.recognise(launch)] == []
