"""SkyPilot tasks: accelerators in all shapes, and the variables that SkyPilot sets."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.findings import Located, Unknown

TASK = """
name: big
resources:
  image_id: docker:vllm/vllm-openai:v0.10.0
  accelerators: H100:8
num_nodes: 2
envs:
  MODEL: org/model
  LENGTH: 4096
secrets:
  HF_TOKEN: null
setup: |
  pip install vllm==0.10.1
run: |
  if [ "$SKYPILOT_NODE_RANK" == "0" ]; then
    vllm serve $MODEL \\
      --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE \\
      --pipeline-parallel-size ${SKYPILOT_NUM_NODES} \\
      --max-model-len $LENGTH --api-key $HF_TOKEN
  fi
service: {replicas: 3}
"""


def engine(got):
    (launch,) = [launch for launch in got.launches if engines.recognise(launch)]
    return launch


def test_the_script_is_read_with_what_skypilot_sets(read, words):
    got = read(TASK)
    assert got.form == "skypilot"
    launch = engine(got)
    assert launch.name == "task/big"
    assert words(launch) == [
        "vllm", "serve", "org/model", "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2",
        "--max-model-len", "4096", "--api-key", "<$HF_TOKEN>",
    ]  # fmt: skip
    assert launch.argv[-1].reason == "it is given when the task starts: --env HF_TOKEN"
    assert (launch.gpus_per_pod.value, launch.gpu.value, launch.pods.value, launch.replicas.value) == (8, "H100", 2, 3)
    assert launch.image.value == "vllm/vllm-openai:v0.10.0"
    assert got.cut(launch.argv[2]) == "org/model"


def test_setup_installs_into_the_same_unit(read, words):
    installer = read(TASK).launches[0]
    assert words(installer) == ["pip", "install", "vllm==0.10.1"]
    assert installer.unit == engine(read(TASK)).unit


@pytest.mark.parametrize(
    ("accelerators", "gpu", "count"),
    [
        ("H100:8", "H100", 8),
        ("H100", "H100", 1),
        ("{H100: 8}", "H100", 8),
        ("{H100:8}", "H100", 8),
        ("{L4:1, A10G:1}", "L4|A10G", 1),
        ("[H100:8, H200:8]", "H100|H200", 8),
        ("{H100: 8, H200: 4}", "H100|H200", None),
        ("A100-80GB:4", "A100-80GB", 4),
        ("L4:0.5", "L4", None),
        ("tpu-v5litepod-8", "tpu-v5litepod-8", None),
        ("'{{ gpu }}:8'", None, None),
    ],
)
def test_accelerators_have_many_shapes(read, accelerators, gpu, count):
    launch = engine(read(f"resources:\n  accelerators: {accelerators}\nrun: vllm serve m\n"))
    assert (launch.gpu.value if isinstance(launch.gpu, Located) else None) == gpu
    assert (launch.gpus_per_pod.value if isinstance(launch.gpus_per_pod, Located) else None) == count


@pytest.mark.parametrize("choice", ["any_of", "ordered"])
def test_choices_of_resources_are_alternatives(read, choice):
    got = read(
        f"resources:\n  {choice}:\n  - accelerators: H100:8\n  - {{accelerators: H200:8, infra: aws}}\nrun: vllm serve m\n"
    )
    assert (engine(got).gpu.value, engine(got).gpus_per_pod.value) == ("H100|H200", 8)


def test_choices_of_clouds_have_the_cards_of_all(read):
    got = read(
        "resources:\n  accelerators: H100:8\n  any_of: [{infra: aws}, {infra: gcp}]\nrun: vllm serve m -tp $SKYPILOT_NUM_GPUS_PER_NODE\n"
    )
    assert (engine(got).gpu.value, engine(got).argv[-1].value) == ("H100", "8")


def test_a_machine_names_the_card(read):
    got = read("resources: {instance_type: p5.48xlarge}\nrun: vllm serve m\n")
    assert (engine(got).gpu.value, engine(got).gpus_per_pod) == ("p5.48xlarge", None)


def test_nodes_that_do_not_ask_for_each_other_are_copies(read):
    got = read("resources: {accelerators: L4:1}\nnum_nodes: 4\nrun: vllm serve m\n")
    assert (engine(got).replicas.value, engine(got).pods) == (4, None)


def test_an_image_of_a_machine_is_no_container(read):
    assert engine(read("resources: {image_id: ami-123}\nrun: vllm serve m\n")).image is None


def test_a_container_has_the_cards_of_the_node(read):
    got = read("resources: {accelerators: L4:4}\nrun: docker run --gpus all vllm/vllm-openai:v0.10.0 --model m\n")
    assert (engine(got).gpus_per_pod.value, engine(got).image.value) == (4, "vllm/vllm-openai:v0.10.0")


def test_without_cards_their_number_is_unknown(read):
    launch = engine(read("resources: {cpus: 4}\nrun: vllm serve m -tp $SKYPILOT_NUM_GPUS_PER_NODE\n"))
    assert isinstance(launch.argv[-1], Unknown)


@pytest.mark.parametrize(
    "text", ["run: 3\n", "run: vllm serve m\n", "run: {a: b}\nresources: {}\n", "resources: {accelerators: L4:1}\n"]
)
def test_other_files_are_not_tasks(read, text):
    assert read(text).form != "skypilot" or read(text).launches[0].argv[0].value != "vllm"
