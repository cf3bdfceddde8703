"""Decode and prefill context parallelism that the heads or the other sizes do not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._words import listed

OLD_BLOCK_SIZE = 16
"""Tokens of a block of the KV cache where nobody says otherwise."""

MOST_TRIED = 64
"""Sizes among which smaller ones are looked for."""

NIXL = "NixlConnector"
AT = ("decode_context_parallel_size", "tensor_parallel_size", "prefill_context_parallel_size")


def _dcp(told: Told) -> int:
    return int(told.decode_context_parallel_size or 1)


def _pcp(told: Told) -> int:
    return int(told.prefill_context_parallel_size or 1)


def _of_shared_heads(told: Told) -> bool:
    """Whether the KV heads decide: decode context parallelism of a model without latent attention."""
    return _dcp(told) > 1 and told.num_key_value_heads > 0 and not _is_latent(told)


def _is_latent(told: Told) -> bool:
    return bool(told.is_mla) and told.variable("VLLM_MLA_DISABLE") in ("", "0")


def _most(told: Told) -> int:
    return int(told.tensor_parallel_size // told.num_key_value_heads)


def _shared(told: Told) -> int:
    """Query heads that share one KV head."""
    return int(told.num_attention_heads // told.num_key_value_heads)


def _smaller(told: Told, most: int) -> Iterator[str]:
    """Sizes that the heads and TP allow, the nearest first."""
    for size in range(min(_dcp(told), most, MOST_TRIED), 0, -1):
        if told.tensor_parallel_size % size == 0 and _shared(told) % size == 0:
            yield f"--decode-context-parallel-size {size}"
            return


def _dividing(told: Told) -> Iterator[str]:
    """Divisors of TP on both sides of the size."""
    tp, dcp = told.tensor_parallel_size, _dcp(told)
    for size in range(min(dcp, tp, MOST_TRIED), 0, -1):
        if tp % size == 0:
            yield f"--decode-context-parallel-size {size}"
            break
    if tp > 0:
        yield f"--tensor-parallel-size {-(-tp // dcp) * dcp}"


def _legal_with_prefill(told: Told) -> tuple[int, ...]:
    return tuple(sorted({1, _pcp(told), told.tensor_parallel_size * _pcp(told)}))


def _interleave(told: Told) -> int:
    return int(told.cp_kv_cache_interleave_size or told.dcp_kv_cache_interleave_size or 1)


def _block(told: Told) -> int:
    return int(told.block_size or OLD_BLOCK_SIZE)


def _has_nixl(told: Told) -> bool:
    connector = told.part("kv_transfer_config", "kv_connector")
    extra = told.part("kv_transfer_config", "kv_connector_extra_config")
    inner: Any = extra.get("connectors") if isinstance(extra, Mapping) else None
    names = [child.get("kv_connector") for child in inner if isinstance(child, Mapping)] if inner else []
    return connector == NIXL or (connector == "MultiConnector" and NIXL in names)


def _transfer_size(told: Told) -> int:
    return max(int(told.tensor_parallel_size), _pcp(told))


CONDITIONS = (
    Condition(
        AT,
        lambda t: _dcp(t) > 1 and _pcp(t) == 1 and t.tensor_parallel_size % _dcp(t) != 0,
        lambda t: (
            f"decode context parallelism takes its {_dcp(t)} ranks from the {t.tensor_parallel_size} of tensor "
            f"parallelism, and {t.tensor_parallel_size} does not divide by {_dcp(t)}"
        ),
        sum=lambda t: f"TP {t.tensor_parallel_size} % DCP {_dcp(t)} = {t.tensor_parallel_size % _dcp(t)}",
        help=_dividing,
        since="0.11.1",
    ),
    Condition(
        AT,
        lambda t: _pcp(t) > 1 and _dcp(t) not in _legal_with_prefill(t),
        lambda t: (
            f"beside {_pcp(t)} ranks of prefill context parallelism and TP {t.tensor_parallel_size}, the decode "
            f"context parallel size is one of {listed(_legal_with_prefill(t))}, and it is {_dcp(t)}"
        ),
        sum=lambda t: f"DCP {_dcp(t)} is none of 1, PCP {_pcp(t)}, TP x PCP = {t.tensor_parallel_size * _pcp(t)}",
        help=lambda t: tuple(f"--decode-context-parallel-size {size}" for size in _legal_with_prefill(t)),
        since="0.26.0",
    ),
    Condition(
        ("prefill_context_parallel_size",),
        lambda t: _pcp(t) > 1,
        lambda t: f"prefill context parallelism is not there yet, and {_pcp(t)} ranks are asked for",
        help=lambda t: ("--prefill-context-parallel-size 1",),
        since="0.12.0",
        until="0.12.0",
    ),
    Condition(
        AT,
        lambda t: _of_shared_heads(t) and t.tensor_parallel_size <= t.num_key_value_heads,
        lambda t: (
            f"decode context parallelism ({_dcp(t)} ranks) shares out copies of KV heads, and with "
            f"{t.num_key_value_heads} KV heads on {t.tensor_parallel_size} tensor parallel ranks there are none"
        ),
        sum=lambda t: f"TP {t.tensor_parallel_size} <= {t.num_key_value_heads} KV heads",
        help=lambda t: (
            "--decode-context-parallel-size 1",
            f"--tensor-parallel-size {t.num_key_value_heads * _dcp(t)}, where there are as many GPUs",
        ),
        since="0.11.1",
    ),
    Condition(
        AT,
        lambda t: _of_shared_heads(t) and t.tensor_parallel_size > t.num_key_value_heads and _dcp(t) > _most(t),
        lambda t: (
            f"decode context parallelism over {_dcp(t)} ranks needs as many copies of each KV head, and "
            f"{t.num_key_value_heads} KV heads on {t.tensor_parallel_size} tensor parallel ranks make {_most(t)}"
        ),
        sum=lambda t: f"DCP {_dcp(t)} > TP {t.tensor_parallel_size} / {t.num_key_value_heads} KV heads = {_most(t)}",
        help=lambda t: _smaller(t, _most(t)),
        since="0.11.1",
    ),
    Condition(
        AT,
        lambda t: _of_shared_heads(t) and t.tensor_parallel_size > t.num_key_value_heads and _shared(t) % _dcp(t) != 0,
        lambda t: (
            f"{_shared(t)} query heads share one KV head, and they do not divide by {_dcp(t)} ranks of decode context "
            "parallelism"
        ),
        sum=lambda t: (
            f"{t.num_attention_heads} heads / {t.num_key_value_heads} KV heads = {_shared(t)}; "
            f"{_shared(t)} % DCP {_dcp(t)} = {_shared(t) % _dcp(t)}"
        ),
        help=lambda t: _smaller(t, _most(t)),
        since="0.11.1",
    ),
    Condition(
        ("cp_kv_cache_interleave_size", "dcp_kv_cache_interleave_size", "block_size", *AT),
        lambda t: (
            _dcp(t) > 1
            and _interleave(t) > 1
            and not _has_nixl(t)
            and t.block_size is not None
            and (_interleave(t) > _block(t) or _block(t) % _interleave(t) != 0)
        ),
        lambda t: (
            f"a block of {_block(t)} tokens of the KV cache is not whole runs of {_interleave(t)} tokens "
            "(--cp-kv-cache-interleave-size)"
        ),
        sum=lambda t: f"{_block(t)} % {_interleave(t)} = {_block(t) % _interleave(t)}",
        since="0.33.0",
        effect="fails-while-loading",
    ),
    Condition(
        ("decode_context_parallel_size", "kv_transfer_config"),
        lambda t: _dcp(t) > 1 and _has_nixl(t) and _dcp(t) != _transfer_size(t),
        lambda t: (
            f"{NIXL} hands on a KV cache that lies whole on every rank or is shared by all {_transfer_size(t)}, and "
            f"decode context parallelism shares it by {_dcp(t)}"
        ),
        sum=lambda t: f"DCP {_dcp(t)} is neither 1 nor {_transfer_size(t)}",
        help=lambda t: (f"--decode-context-parallel-size {_transfer_size(t)}", "--decode-context-parallel-size 1"),
        since="0.33.0",
    ),
    Condition(
        ("decode_context_parallel_size", "kv_transfer_config"),
        lambda t: _dcp(t) > 1 and _has_nixl(t) and not _is_latent(t),
        lambda t: (
            f"{NIXL} hands on a KV cache shared by {_dcp(t)} ranks of decode context parallelism only for models with "
            "latent attention (MLA)"
        ),
        help=lambda t: ("--decode-context-parallel-size 1",),
        since="0.33.0",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(CONDITIONS, told, engine, engine_version)


RULE = Rule("SL501", "decode-context-parallel", "dcp", "error", "refuses-at-start", judge)
