"""The same KV cache, stored on several tensor parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.architectures import Rows
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import kib, respelled


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    fewest_key_value_heads: Located[int],
    tensor_parallel_size: Located[int],
    decode_context_parallel_size: Located[int],
    is_mla: Located[bool],
    layout: Layout | None = None,
    rows: Rows | None = None,
) -> Iterator[Problem]:
    tp = tensor_parallel_size.value
    heads = 1 if is_mla.value else fewest_key_value_heads.value
    if heads < 1 or tp % heads != 0 or decode_context_parallel_size.value < 1:
        return
    copies = tp // heads // decode_context_parallel_size.value
    if copies < 2:
        return
    what = "the one latent KV head of this model" if is_mla.value else _each_of(heads)
    yield Problem(
        at=tensor_parallel_size,
        message=f"with a tensor parallel size of {tp}, {what} is stored on {copies} GPUs{_cost(layout, tp, copies)}",
        sum=f"TP {tp} / {heads} KV {'heads' if heads > 1 else 'head'} = {tp // heads}"
        + (f" / DCP {decode_context_parallel_size.value} = {copies}" if decode_context_parallel_size.value > 1 else ""),
        help=tuple(_advice(tensor_parallel_size, heads, rows, is_mla=bool(is_mla.value))),
        related=((fewest_key_value_heads, f"{fewest_key_value_heads.value} KV heads"),) if not is_mla.value else (),
    )


def _each_of(heads: int) -> str:
    return f"each of the {heads} KV heads" if heads > 1 else "the one KV head"


def _cost(layout: Layout | None, tp: int, copies: int) -> str:
    """KiB per token, where the bytes are known: of the heaviest GPU and of one replica."""
    ranks = [rank for rank in layout.ranks if rank.data_parallel_rank == 0] if layout is not None else []
    shares = [rank.kv_bytes_per_token_if_all_full for rank in ranks]
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares) or not any(known):
        return f": the {tp} GPUs hold {copies} times the KV cache that the model needs"
    return (
        f": a token takes {kib(max(known))} on each GPU and {kib(sum(known))} over all {len(known)}, "
        f"{copies} times the {kib(sum(known) / copies)} that it needs"
    )


def _advice(size: Located[int], heads: int, rows: Rows | None, *, is_mla: bool) -> Iterator[str]:
    more = size.value // heads
    fewer = respelled(size, heads, "tensor_parallel_size")
    if is_mla:
        yield f"{fewer} --data-parallel-size {more} --enable-expert-parallel"
    else:
        yield f"{fewer} and the other factor {more} as PP or DP"
    if rows is None or all(demand.kind != "no_decode_context_parallel" for demand in rows.demands):
        yield f"--decode-context-parallel-size {more}: the copies then share the tokens"


RULE = Rule("SL103", "kv-heads-replicated", "kv-replication", "note", "wastes", judge, applies)
