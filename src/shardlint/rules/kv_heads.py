"""KV heads that can neither be split nor replicated evenly over the tensor parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.rules._words import named, tensor_advice


def applies(engine: Engine, tensor_parallel_size: Located[int]) -> bool:
    return engine.name == "vllm" and tensor_parallel_size.value > 1


def judge(
    num_key_value_heads: Located[int],
    tensor_parallel_size: Located[int],
    is_mla: Located[bool],
    num_attention_heads: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    kv_heads, tp = num_key_value_heads.value, tensor_parallel_size.value
    if is_mla.value or kv_heads < 1 or kv_heads == num_attention_heads.value:  # the last is query-heads' to say
        return
    larger, smaller = max(kv_heads, tp), min(kv_heads, tp)
    if larger % smaller == 0:
        return
    how = "split over" if kv_heads > tp else "replicated on"
    sum_ = f"{kv_heads} KV heads % {tp}" if kv_heads > tp else f"TP {tp} % {kv_heads} KV heads"
    yield Problem(
        at=tensor_parallel_size,
        message=f"{kv_heads} KV heads cannot be {how} {tp} tensor parallel ranks evenly: "
        f"{named(engine, engine_version)} fails while it builds the model, with an AssertionError and no text",
        sum=f"{sum_} = {larger % smaller}",
        help=tensor_advice(legal, tensor_parallel_size),
        related=((num_key_value_heads, f"{kv_heads} KV heads"),),
    )


RULE = Rule("SL102", "kv-heads", "tp-kv-heads", "error", "fails-while-loading", judge, applies)
