"""KV heads that can neither be split nor replicated evenly over the tensor parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._attention import attention_ranks
from shardlint.rules._words import named, tensor_advice


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    num_key_value_heads: Located[int],
    tensor_parallel_size: Located[int],
    is_mla: Located[bool],
    num_attention_heads: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    told: Told,
    legal: Legal | None = None,
    layout: Layout | None = None,
) -> Iterator[Problem]:
    kv_heads, tp = num_key_value_heads.value, attention_ranks(told, engine, tensor_parallel_size)
    if is_mla.value or kv_heads < 1 or kv_heads == num_attention_heads.value:  # the last is query-heads' to say
        return
    what = _what_does_not_come_out(kv_heads, tp) or _what_is_not_replicated(kv_heads, tp, layout)
    if what is None:
        return
    reason, sum_, error = what
    yield Problem(
        at=tensor_parallel_size,
        message=f"{reason}: {named(engine, engine_version)} fails while it builds the model, with {error}",
        sum=sum_,
        help=tensor_advice(legal, tensor_parallel_size),
        related=((num_key_value_heads, f"{kv_heads} KV heads"),),
    )


def _what_does_not_come_out(kv_heads: int, tp: int) -> tuple[str, str, str] | None:
    """Reason, sum and error, where the larger number is no multiple of the smaller."""
    larger, smaller = max(kv_heads, tp), min(kv_heads, tp)
    if larger % smaller == 0:
        return None
    how = "split over" if kv_heads > tp else "replicated on"
    reason = f"{kv_heads} KV heads cannot be {how} {tp} tensor parallel ranks evenly"
    sum_ = f"{kv_heads} KV heads % {tp}" if kv_heads > tp else f"TP {tp} % {kv_heads} KV heads"
    return reason, f"{sum_} = {larger % smaller}", "an AssertionError and no text"


def _what_is_not_replicated(kv_heads: int, tp: int, layout: Layout | None) -> tuple[str, str, str] | None:
    """The same, where the class wants at least one KV head for each rank (gpt-oss)."""
    if layout is None or not any(piece.too_few for piece in layout.uneven if piece.piece == "kv_head"):
        return None
    reason = f"{kv_heads} KV heads are fewer than {tp} tensor parallel ranks, and this class does not replicate them"
    return reason, f"{kv_heads} KV heads // {tp} = 0", "a ZeroDivisionError"


RULE = Rule(
    "SL102", "kv-heads", "tp-kv-heads", "error", "fails-while-loading", judge, applies, engines=("vllm", "sglang")
)
