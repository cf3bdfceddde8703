"""The words that findings are made of, as data: severities, effects, families, groups, kinds of pieces."""

from __future__ import annotations

from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")  # the worst first

Effect = Literal[
    "refuses-at-start",
    "fails-while-loading",
    "runs-out-of-memory",
    "hangs",
    "slow",
    "wastes",
    "misbehaves",
]

Certainty = Literal["exact", "estimate"]

FAMILIES: dict[str, str] = {
    "tp-quant-block": "a shard is not a whole quantisation block or group",
    "world-vs-gpus": "the layout needs another number of GPUs than the manifest gives",
    "mem-kv": "the KV cache does not hold what is asked of it",
    "shm-ipc": "shared memory or IPC is missing between the ranks",
    "multinode-shape": "pods, nodes and GPUs do not have the shape of the layout",
    "nccl-net": "the ranks will not find each other over the network",
    "tp-heads": "query heads do not divide by the tensor parallel size",
    "interconnect": "the links between the GPUs do not suit the layout",
    "dp-semantics": "data parallelism does not do here what it seems to",
    "probes": "a probe kills the server while it loads",
    "pp-partition": "pipeline stages are uneven or misdescribed",
    "mem-weights": "the weights do not fit",
    "pp-unsupported": "the model class has no pipeline parallelism",
    "executor-backend": "the executor cannot reach the GPUs of the layout",
    "hetero-gpus": "unequal GPUs: the smallest decides",
    "mig-fractional": "slices of GPUs under tensor parallelism",
    "ep-moe": "expert parallelism does not fit the experts",
    "tp-kv-heads": "KV heads neither split nor replicate evenly",
    "tp-vocab": "the padded vocabulary does not divide",
    "tp-vision": "a vision or audio tower does not divide",
    "kv-replication": "the same KV cache is stored on several ranks",
    "mem-shared-gpu": "several engines share one GPU's memory",
    "dcp": "decode context parallelism does not fit",
    "host-memory": "the host's memory does not suffice",
    "multinode-args": "the nodes' commands do not agree",
    "pp-engine": "the engine's limits on pipeline parallelism",
    "spec-decode": "the draft model does not fit the layout",
    "tp-mamba": "state-space heads or groups do not divide",
    "tp-width": "another sharded width does not divide",
    "flags": "a flag that the engine does not take as written",
    "versions": "the layout needs another engine version",
    "model-support": "the engine does not know the model",
    "model-length": "the model's length limits",
    "lora": "adapters do not fit the layout",
    "file": "a file that could not be read, or says a thing twice",
    "plugin": "a plugin's own",
}

GROUPS: dict[str, str] = {
    "SL0": "the linter's own",
    "SL1": "heads and tensor parallel",
    "SL2": "layers and pipeline",
    "SL3": "replicas and data parallel",
    "SL4": "experts",
    "SL5": "context parallel",
    "SL6": "quantisation",
    "SL7": "memory",
    "SL8": "GPUs, nodes and platform",
    "SL9": "flags and versions",
}

Piece = Literal[
    "query_head",
    "kv_head",
    "vision_head",
    "state_head",
    "state_group",
    "column",
    "row",
    "vocabulary",
    "expert",
    "expert_width",
    "quantisation_block",
    "whole",
]
"""What a row of weights is cut into.  A closed list: an engine's cutting table has an entry for each."""
