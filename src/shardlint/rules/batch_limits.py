"""Limits of batches and caches that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged


def _length(told: Told) -> int | None:
    """Tokens of the longest request as written; what the memory holds is at least 1."""
    length: int | None = told.max_model_len
    return length


CONNECTORS = (
    *("NixlConnector", "MultiConnector", "LMCacheConnectorV1", "LMCacheMPConnector", "SharedStorageConnector"),
    *("ExampleConnector", "P2pNcclConnector", "OffloadingConnector", "MooncakeConnector", "MoRIIOConnector"),
    *("DecodeBenchConnector", "SimpleCPUOffloadConnector", "NixlPullConnector", "NixlPushConnector"),
)
"""The engine's own connectors; others may do without a role."""

CONDITIONS = (
    Condition(
        ("max_num_batched_tokens", "max_num_seqs"),
        lambda t: (
            t.max_num_batched_tokens is not None
            and t.max_num_seqs is not None
            and 0 < t.max_num_batched_tokens < t.max_num_seqs
        ),
        lambda t: (
            f"a batch of {t.max_num_batched_tokens} tokens does not hold one token of each of "
            f"{t.max_num_seqs} sequences"
        ),
        sum=lambda t: f"{t.max_num_batched_tokens} tokens < {t.max_num_seqs} sequences",
        help=lambda t: (f"--max-num-seqs {t.max_num_batched_tokens}", f"--max-num-batched-tokens {t.max_num_seqs}"),
    ),
    Condition(
        ("max_num_batched_tokens", "enable_chunked_prefill", "max_model_len"),
        lambda t: (
            t.enable_chunked_prefill is False
            and t.max_num_batched_tokens is not None
            and _length(t) is not None
            and 0 < t.max_num_batched_tokens < (_length(t) or 0)
        ),
        lambda t: (
            f"without chunked prefill a request of {t.max_model_len} tokens has to be in one batch, and a batch has "
            f"{t.max_num_batched_tokens}"
        ),
        sum=lambda t: f"{t.max_num_batched_tokens} < {t.max_model_len}",
        help=lambda t: (
            "leave --no-enable-chunked-prefill out",
            f"--max-num-batched-tokens {t.max_model_len}",
            f"--max-model-len {t.max_num_batched_tokens}",
        ),
    ),
    Condition(
        ("max_num_active_seqs", "max_num_seqs"),
        lambda t: (
            t.max_num_active_seqs is not None
            and t.max_num_seqs is not None
            and t.max_num_active_seqs > t.max_num_seqs > 0
        ),
        lambda t: f"{t.max_num_active_seqs} active sequences are more than the {t.max_num_seqs} of a batch",
        sum=lambda t: f"{t.max_num_active_seqs} > {t.max_num_seqs}",
        help=lambda t: (f"--max-num-active-seqs {t.max_num_seqs}", f"--max-num-seqs {t.max_num_active_seqs}"),
        since="0.31.0",
    ),
    Condition(
        ("long_prefill_token_threshold", "max_model_len"),
        lambda t: (
            t.long_prefill_token_threshold is not None
            and _length(t) is not None
            and t.long_prefill_token_threshold > (_length(t) or 0) > 0
        ),
        lambda t: (
            f"a prompt counts as long from {t.long_prefill_token_threshold} tokens on, and requests have at most "
            f"{t.max_model_len}"
        ),
        sum=lambda t: f"{t.long_prefill_token_threshold} > {t.max_model_len}",
        help=lambda t: (f"--long-prefill-token-threshold {t.max_model_len}",),
        since="0.33.0",
    ),
    Condition(
        ("mamba_block_size", "enable_prefix_caching"),
        lambda t: t.enable_prefix_caching is False and (t.mamba_block_size or 0) > 0,
        lambda t: f"--mamba-block-size {t.mamba_block_size} is for prefix caching, and it is off",
        help=lambda t: ("--enable-prefix-caching", "leave --mamba-block-size out"),
        since="0.33.0",
    ),
    Condition(
        ("kv_cache_dtype",),
        lambda t: (
            str(t.kv_cache_dtype or "").startswith("nvfp4")
            and not str(t.kv_cache_dtype).endswith("_ds_mla")
            and bool(t.is_mla)
            and t.variable("VLLM_MLA_DISABLE") in ("", "0")
        ),
        lambda t: f"the KV cache of latent attention (MLA) cannot be {t.kv_cache_dtype}",
        help=lambda t: ("--kv-cache-dtype fp8", "--kv-cache-dtype auto"),
        since="0.33.0",
    ),
    Condition(
        ("kv_transfer_config",),
        lambda t: (
            t.part("kv_transfer_config", "kv_connector") in CONNECTORS
            and t.part("kv_transfer_config", "kv_role") is None
        ),
        lambda t: f"the connector {t.part('kv_transfer_config', 'kv_connector')} needs a kv_role, and there is none",
        help=lambda t: ('"kv_role": "kv_both"', '"kv_role": "kv_producer"', '"kv_role": "kv_consumer"'),
        since="0.8.5",
    ),
    Condition(
        ("kv_transfer_config",),
        lambda t: (
            t.part("kv_transfer_config", "kv_role") is not None and t.part("kv_transfer_config", "kv_connector") is None
        ),
        lambda t: f"the kv_role {t.part('kv_transfer_config', 'kv_role')} is set without a kv_connector",
        help=lambda t: ('"kv_connector": "NixlConnector"',),
        since="0.33.0",
    ),
    Condition(
        ("kv_transfer_config",),
        lambda t: t.part("kv_transfer_config", "kv_role") not in (None, "kv_both", "kv_producer", "kv_consumer"),
        lambda t: f"the kv_role {t.part('kv_transfer_config', 'kv_role')} is none",
        help=lambda t: ('"kv_role": "kv_both"', '"kv_role": "kv_producer"', '"kv_role": "kv_consumer"'),
        since="0.8.5",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(CONDITIONS, told, engine, engine_version)


RULE = Rule("SL907", "batch-limits", "flags", "error", "refuses-at-start", judge)
