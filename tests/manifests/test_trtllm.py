"""Files of TensorRT-LLM's options."""

from __future__ import annotations

import pytest
from stated_layouts import deployments, only, sizes

from shardlint.findings import Unknown


def test_options_are_a_servers_by_two_schools_of_names(read):
    for names in ("tensor_parallel_size: 8\nmoe_expert_parallel_size: 4\n", "tp_size: 8\nep_size: 4\n"):
        got = read(names + "max_seq_len: 4096\nkv_cache_config: {free_gpu_memory_fraction: 0.7}\n")
        assert got.form == "trtllm"
        deployment = only(got.launches)
        assert deployment.engine == "trtllm"
        assert sizes(deployment) == {"tensor_parallel_size": 8, "expert_parallel_size": 4, "max_model_len": 4096}
        assert got.cut(deployment.knobs["tensor_parallel_size"]) == "8"
        assert isinstance(deployment.model, Unknown)


def test_options_may_lie_one_level_down(read):
    deployment = only(read("tp_size: 4\nllm_api_args: {max_num_tokens: 2048}\n").launches)
    assert sizes(deployment) == {"tensor_parallel_size": 4, "max_num_batched_tokens": 2048}


def test_phases_of_a_disaggregated_server_are_two_engines(read):
    got = read(
        """
        model: org/model
        backend: pytorch
        context_servers: {num_instances: 2, tensor_parallel_size: 1, max_batch_size: 2}
        generation_servers: {num_instances: 1, tensor_parallel_size: 4}
        """,
        path="disagg.yaml",
    )
    prefill, decode = deployments(got.launches)
    assert (prefill.name, prefill.replicas.value, sizes(prefill)) == (
        "disagg.yaml/prefill",
        2,
        {"tensor_parallel_size": 1, "max_num_seqs": 2},
    )
    assert (decode.name, decode.model.value, sizes(decode)) == (
        "disagg.yaml/decode",
        "org/model",
        {"tensor_parallel_size": 4},
    )


def test_workers_of_the_benchmark_on_slurm(read):
    got = read(
        """
        environment: {model_path: /models/m}
        worker_config:
          gen: {tensor_parallel_size: 8, moe_expert_parallel_size: 8}
          ctx: {tensor_parallel_size: 4}
        """
    )
    prefill, decode = deployments(got.launches)
    assert (prefill.model.value, sizes(prefill)) == ("/models/m", {"tensor_parallel_size": 4})
    assert sizes(decode) == {"tensor_parallel_size": 8, "expert_parallel_size": 8}


@pytest.mark.parametrize(
    "text",
    [
        "kv_cache_config: {enable_block_reuse: false}\n",
        "tensor_parallel_size: 8\nbackend: pytorch\n",
        "tensor_parallel_size: 8\nmax_model_len: 4096\nmodel: a/b\n",
        "context_servers: [a]\n",
        "kind: X\ntp_size: 8\nmoe_backend: CUTLASS\n",
    ],
)
def test_what_states_no_size_or_is_another_engines_is_left_alone(read, text):
    assert read(text).form != "trtllm"
