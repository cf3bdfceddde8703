"""vLLM."""

from __future__ import annotations

from shardlint.engines.engine import Command, Engine
from shardlint.engines.vllm.architectures import FOLDER, knows, supports_pp
from shardlint.engines.vllm.cutting import cutting

SERVE = Command("vllm", "serve", takes_model=True)

MARKS = frozenset(
    {
        "--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--gpu-memory-utilization",
        "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens", "--enforce-eager",
        "--enable-prefix-caching", "--enable-expert-parallel", "--distributed-executor-backend",
    }
)  # fmt: skip

ENGINES = (
    Engine(
        name="vllm",
        label="vLLM",
        newest="0.33.0",
        judged=True,
        folder=FOLDER,
        commands=(
            SERVE,
            Command("vllm.entrypoints.openai.api_server", is_module=True),
            Command("vllm.entrypoints.api_server", is_module=True),
            Command("vllm.entrypoints.launchers.api_server", is_module=True),
            Command("vllm.entrypoints.grpc_server", is_module=True),
            Command("vllm.entrypoints.cli.main", "serve", is_module=True, takes_model=True),
            Command("vllm", "serve", is_module=True, takes_model=True),
            Command("dynamo.vllm", is_module=True, takes_more=True),
            Command(  # KServe's server, which hands to vLLM what it does not know itself
                "huggingfaceserver",
                is_module=True,
                takes_more=True,
                renamed={"--model-dir": "--model", "--model-id": "--model", "--max-length": "--max-model-len"},
            ),
        ),
        entry=SERVE,
        images=r"(?:^|/)vllm-openai[\w.-]*$|(?:^|/)vllm/vllm-[\w.-]+$|(?:^|/)(?:modh|rhaiis|rhaii)/vllm[\w.-]*$",
        kin=r"(?<![a-z])vllm",
        release_images=r"(?:^|(?<!lmcache)/)vllm-openai[\w.-]*$|^(?:[\w.-]+/)?vllm/vllm-[\w.-]+$|(?:^|/)intel/vllm$|/vllm-[\w-]*release-repo$",
        marks=MARKS,
        packages=("vllm",),
        environment={
            "VLLM_PP_LAYER_PARTITION": "pp_layer_partition",
            "VLLM_DP_SIZE": "data_parallel_size",
            "VLLM_DP_RANK": "data_parallel_rank",
        },
        object_knobs={
            "--eplb-config": {"num_redundant_experts": "num_redundant_experts"},
            "--engram-config": {"cpu_offload": "engram_cpu_offload"},
        },
        file_flags=("--config",),
        handed_over_by=frozenset({"--omni"}),
        cut=cutting,
        pp_support=supports_pp,
        known_class=knows,
    ),
)
