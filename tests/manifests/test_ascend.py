"""Nightly configurations of vLLM-Ascend: test cases, commands by node, and templates filled in from a list."""

from __future__ import annotations

import pytest
from stated_layouts import deployments, only, sizes

from shardlint.findings import Unknown

NODES = """
test_name: two nodes
model: org/model
num_nodes: 2
npu_per_node: 16
env_common: &env {PORT: 8080, LENGTH: 4096}
deployment:
- envs: {<<: *env}
  server_cmd: >
    vllm serve org/model --port $PORT --data-parallel-size 4 --data-parallel-size-local 2
        --tensor-parallel-size 8
        --max-model-len $LENGTH --additional-config '{"a": true}'
- envs: {<<: *env}
  server_cmd: >
    vllm serve org/model --headless --data-parallel-size 4 --data-parallel-size-local 2
    --tensor-parallel-size 8 --data-parallel-start-rank 2 --max-model-len $LENGTH
"""
TEMPLATES = """
test_name: phases
model: org/model
npu_per_node: 16
routing: {groups: {prefiller: [0, 1], decoder: [2, 3]}}
config:
- {node_index: 0, dp_size: 2, dp_rank_start: 0, tp_size: 8}
- {node_index: 1, dp_size: 2, dp_rank_start: 0, tp_size: 8}
- {node_index: 2, dp_size: 32, dp_rank_start: 0, tp_size: 1}
- {node_index: 3, dp_size: 32, dp_rank_start: 16, tp_size: 1}
templates:
- &prefill
  envs: {ASCEND_RT_VISIBLE_DEVICES: "${VISIBLE_DEVICES}"}
  server_cmd_template: &cmd
  - --tensor-parallel-size
  - ${TP_SIZE}
  - --data-parallel-size
  - ${DP_SIZE}
  - --data-parallel-rank
  - ${DP_RANK}
- *prefill
- server_cmd_template: *cmd
- server_cmd_template: *cmd
"""


def test_a_command_for_each_node_makes_one_engine(read):
    got = read(NODES)
    assert got.form == "ascend"
    deployment = only(got.launches)
    assert (deployment.name, deployment.model.value) == ("test/two nodes", "org/model")
    assert (deployment.pods.value, deployment.gpus_per_pod.value) == (2, 16)
    assert sizes(deployment)["max_model_len"] == 4096
    assert got.cut(deployment.knobs["tensor_parallel_size"]) == "8"


def test_prefill_and_decode_are_told_apart_by_lists_of_hosts(read):
    text = NODES.replace(" --headless", "").replace(" --data-parallel-start-rank 2", "")
    got = read(text + "disaggregated_prefill: {prefiller_host_index: [0], decoder_host_index: [1]}\n")
    assert [(one.name, one.pods.value) for one in deployments(got.launches)] == [
        ("test/two nodes/prefiller", 1),
        ("test/two nodes/decoder", 1),
    ]


def test_templates_are_filled_in_node_by_node(read):
    found = deployments(read(TEMPLATES).launches)
    assert [(one.name, one.pods.value, one.gpus_per_pod.value) for one in found] == [
        ("test/phases/prefiller/0", 1, 16),
        ("test/phases/prefiller/1", 1, 16),
        ("test/phases/decoder", 2, 16),
    ]
    assert [sizes(one)["data_parallel_size"] for one in found] == [2, 2, 32]
    assert isinstance(found[0].knobs["data_parallel_rank"], Unknown)
    assert found[0].model.value == "org/model"


@pytest.mark.parametrize("port", ["DEFAULT_PORT", "${PORT}"])
def test_what_the_runner_fills_in_is_unknown(read, port):
    got = read(
        f"test_cases: [{{model: m, envs: {{PORT: '{port}'}}, server_cmd: [--port, $PORT, --tensor-parallel-size, '2']}}]\n"
    )
    deployment = only(got.launches)
    assert isinstance(deployment.engine_fields.get("port", Unknown("hidden")), Unknown)
    assert not deployment.flag_problems


def test_a_case_of_one_host_gives_flags_only(read, words):
    got = read(
        """
        test_cases:
        - name: case
          model: org/model
          envs: {PORT: "80"}
          server_cmd: ["--port", "$PORT", "--tensor-parallel-size", "16"]
          server_cmd_extra: ["--max-model-len", "8"]
        """
    )
    assert words(got.only) == [
        "vllm", "serve", "org/model", "--port", "80", "--tensor-parallel-size", "16", "--max-model-len", "8",
    ]  # fmt: skip
    assert got.only.name == "test/case"
    assert got.only.gpus_per_pod is None


@pytest.mark.parametrize(
    "text",
    [
        "deployment: [{name: x}]\n",
        "templates: [{a: b}, x]\n",
        "test_cases: [{model: m}]\n",
        "templates: [{server_cmd_template: x}]\nrouting: {groups: {prefiller: [9], decoder: x}}\n",
    ],
)
def test_lists_of_other_things_start_nothing(read, text):
    assert deployments(read(text).launches) == []
