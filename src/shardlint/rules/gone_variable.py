"""A variable of the environment that the release no longer reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardlint.deployment import Deployment, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._conditions import released
from shardlint.rules._words import named

GONE_SINCE: Mapping[str, tuple[str, str]] = {
    "VLLM_ALL2ALL_BACKEND": ("0.16.0", "--all2all-backend"),
    "VLLM_ATTENTION_BACKEND": ("0.15.0", "--attention-backend"),
    "VLLM_ENABLE_FUSED_MOE_ACTIVATION_CHUNKING": ("0.18.0", ""),
    "VLLM_ENABLE_MOE_DP_CHUNK": ("0.20.0", ""),
    "VLLM_ENGINE_ITERATION_TIMEOUT_S": ("0.32.0", ""),
    "VLLM_FLASHINFER_MOE_BACKEND": ("0.24.0", "--moe-backend"),
    "VLLM_FLASH_ATTN_VERSION": ("0.15.0", "--attention-config.flash_attn_version"),
    "VLLM_FUSED_MOE_CHUNK_SIZE": ("0.18.0", ""),
    "VLLM_MLA_DISABLE_REQUANTIZATION": ("0.8.0", ""),
    "VLLM_MLA_PERFORM_MATRIX_ABSORPTION": ("0.8.0", ""),
    "VLLM_MOE_DP_CHUNK_SIZE": ("0.20.0", ""),
    "VLLM_MXFP4_USE_MARLIN": ("0.24.0", "--moe-backend"),
    "VLLM_NVFP4_GEMM_BACKEND": ("0.24.0", "--linear-backend"),
    "VLLM_RPC_TIMEOUT": ("0.23.0", ""),
    "VLLM_TEST_FORCE_FP8_MARLIN": ("0.29.0", ""),
    "VLLM_USE_FLASHINFER_MOE_FP16": ("0.24.0", "--moe-backend"),
    "VLLM_USE_FLASHINFER_MOE_FP4": ("0.24.0", "--moe-backend"),
    "VLLM_USE_FLASHINFER_MOE_FP8": ("0.24.0", "--moe-backend"),
    "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16": ("0.24.0", "--moe-backend"),
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": ("0.24.0", "--moe-backend"),
    "VLLM_USE_RAY_COMPILED_DAG": ("0.11.1", ""),
    "VLLM_USE_RAY_COMPILED_DAG_CHANNEL_TYPE": ("0.33.0", ""),
    "VLLM_USE_RAY_COMPILED_DAG_OVERLAP_COMM": ("0.33.0", ""),
    "VLLM_USE_RAY_SPMD_WORKER": ("0.11.1", ""),
    "VLLM_USE_RAY_V2_EXECUTOR_BACKEND": ("0.33.0", ""),
    "VLLM_USE_RAY_WRAPPED_PP_COMM": ("0.33.0", ""),
    "VLLM_USE_TRITON_FLASH_ATTN": ("0.11.1", ""),
    "VLLM_USE_TRTLLM_ATTENTION": ("0.15.0", "--attention-backend"),
    "VLLM_USE_V1": ("0.11.1", ""),
    "VLLM_V1_USE_PREFILL_DECODE_ATTENTION": ("0.15.0", "--attention-backend"),
}
"""Variable -> the oldest of the releases that were looked at and no longer read it, and the flag that does the same."""

WITHOUT_EFFECT = {"VLLM_USE_V1": ("1", "true")}
"""Values that ask for what these releases do anyway."""

VALIDATED_SINCE = "0.17.0"


def judge(deployment: Deployment, told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem]:
    refused = engine_version.value >= released(VALIDATED_SINCE) and bool(told.fail_on_environ_validation)
    for name, (since, instead) in GONE_SINCE.items():
        written = deployment.env.get(name)
        if written is None or engine_version.value < released(since) or engine_version.origin == "default":
            continue
        if not refused and isinstance(written, Located) and written.value.lower() in WITHOUT_EFFECT.get(name, ()):
            continue
        value = written.value if isinstance(written, Located) else "VALUE"
        yield Problem(
            at=written if isinstance(written, Located) else written.span,
            message=f"{named(engine, engine_version)} does not read {name}, which is gone since {since}: it "
            + ("refuses to start" if refused else "goes on without what it says"),
            help=(f"{instead} {value}" if instead == "--attention-backend" else instead,) if instead else (),
            severity="error" if refused else "warning",
            effect="refuses-at-start" if refused else "misbehaves",
        )


RULE = Rule("SL910", "gone-variable", "versions", "warning", "misbehaves", judge)
