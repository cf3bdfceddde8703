"""The closed list of knobs: what any engine can be told that has a bearing on the layout, under one name each."""

from __future__ import annotations

from typing import Literal

from shardlint.findings.records import NamedTuple

KnobType = Literal["int", "float", "bool", "str", "size"]
"""size: an int that may be written as 32k, 1M, or -1/auto for "work it out" (then the value is None)."""


class Knob(NamedTuple):
    name: str
    type: KnobType


KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob("tensor_parallel_size", "int"),
        Knob("pipeline_parallel_size", "int"),
        Knob("data_parallel_size", "int"),
        Knob("data_parallel_size_local", "int"),
        Knob("data_parallel_rank", "int"),
        Knob("data_parallel_start_rank", "int"),
        Knob("data_parallel_backend", "str"),
        Knob("data_parallel_external_lb", "bool"),
        Knob("prefill_context_parallel_size", "int"),
        Knob("decode_context_parallel_size", "int"),
        Knob("enable_expert_parallel", "bool"),
        Knob("expert_parallel_size", "int"),
        Knob("enable_eplb", "bool"),
        Knob("num_redundant_experts", "int"),
        Knob("mm_encoder_tp_mode", "str"),
        Knob("language_model_only", "bool"),
        Knob("engram_cpu_offload", "bool"),
        Knob("all2all_backend", "str"),
        Knob("nnodes", "int"),
        Knob("node_rank", "int"),
        Knob("headless", "bool"),
        Knob("distributed_executor_backend", "str"),
        Knob("dtype", "str"),
        Knob("quantization", "str"),
        Knob("kv_cache_dtype", "str"),
        Knob("max_model_len", "size"),
        Knob("max_num_seqs", "int"),
        Knob("max_num_batched_tokens", "size"),
        Knob("gpu_memory_utilization", "float"),
        Knob("pp_layer_partition", "str"),
    )
}
