"""Attention cut by heads: each rank has its query heads, and the KV heads that they read.

Where KV heads are fewer than ranks, several ranks hold the same one (GQA, and MQA with a single one); where they are
as many as query heads (MHA), each query head has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke import cuts
from shardlint.smoke.plan import HEAD_DIM, Heads
from shardlint.smoke.ranks.arithmetic import CLAMP, Arithmetic
from shardlint.smoke.ranks.share import Share

MOST_NAMED = 3
"""Wrong heads that are named one by one."""


class Projections(NamedTuple):
    """The weights of one layer, whole: [hidden, heads of HEAD_DIM], and `out` the other way round."""

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor


def projections(share: Share, heads: Heads) -> Projections:
    hidden, query, kv = share.plan.hidden.tried, heads.query * HEAD_DIM, heads.kv * HEAD_DIM
    return Projections(
        share.weights("query", hidden, query),
        share.weights("key", hidden, kv),
        share.weights("value", hidden, kv),
        share.weights("out", query, hidden),
    )


def project(arithmetic: Arithmetic, x: Tensor, weight: Tensor, heads: range) -> Tensor:
    """[tokens, hidden] -> [tokens, heads, HEAD_DIM], by the columns of these heads."""
    found = x @ weight[:, heads.start * HEAD_DIM : heads.stop * HEAD_DIM]
    bounded = found.clamp(-1, 1) if arithmetic.exact else found
    return bounded.reshape(len(x), len(heads), HEAD_DIM)


def attend(arithmetic: Arithmetic, query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """What each query head reads: [tokens, heads, HEAD_DIM]. `seen` says which key each query may look at.

    Among whole numbers the scores themselves are the weights, because a softmax has fractions.
    """
    group = query.shape[1] // key.shape[1]
    keys, values = (tensor.repeat_interleave(group, dim=1).float() for tensor in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query.float(), keys)
    if arithmetic.exact:
        weights = scores.clamp(-CLAMP, CLAMP).masked_fill(~seen, 0)
    else:
        weights = (scores / HEAD_DIM**0.5).masked_fill(~seen, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, values).to(query.dtype)


def causal(tokens: int, device: torch.device) -> Tensor:
    """[queries, keys]: each token sees itself and those before it."""
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()


def attention(share: Share, kind: str) -> str:
    """Heads of every rank, then their rows of the output projection and one all-reduce, against all heads at once."""
    net, arithmetic, heads = share.net, share.arithmetic, share.plan.heads
    assert heads is not None
    weights, x = projections(share, heads), share.inputs()
    own = cuts.query_heads(share.plan, heads, net.rank)
    read = range(*_bounds(share, cuts.kv_heads(share.plan, heads, net.rank)))
    result = _heads(share, weights, x, own, read)
    rows = weights.out[own.start * HEAD_DIM : own.stop * HEAD_DIM]
    total, results = net.sum(kind, result.flatten(1) @ rows), net.gather(kind, result)
    wanted = _heads(share, weights, x, range(heads.query), range(heads.kv))
    if wrong := list(_wrong_heads(share, heads, kind, results, wanted)):
        return "; ".join(wrong[:MOST_NAMED]) + (f"; and {len(wrong) - MOST_NAMED} more" * (len(wrong) > MOST_NAMED))
    whole = wanted.flatten(1) @ weights.out
    return "" if arithmetic.same(total, whole) else f"{arithmetic.difference(total, whole)}, though every head is right"


def _bounds(share: Share, planned: range) -> tuple[int, int]:
    start, stop = share.plan.deviation("kv-heads", share.net.rank, (planned.start, planned.stop))
    return start, stop


def _heads(share: Share, weights: Projections, x: Tensor, query: range, kv: range) -> Tensor:
    arithmetic = share.arithmetic
    q = project(arithmetic, x, weights.query, query)
    k, v = project(arithmetic, x, weights.key, kv), project(arithmetic, x, weights.value, kv)
    return attend(arithmetic, q, k, v, causal(len(x), x.device))


def _wrong_heads(share: Share, heads: Heads, kind: str, results: list[Tensor], wanted: Tensor) -> Iterator[str]:
    """The query heads that did not come out as planned, with the KV head that they read instead."""
    weights, x = projections(share, heads), share.inputs()
    for member, result in zip(share.plan.group_of(kind, share.net.rank), results, strict=True):
        for column, head in enumerate(cuts.query_heads(share.plan, heads, member)):
            if not share.arithmetic.same(result[:, column], wanted[:, head]):
                planned = head // (heads.query // heads.kv)
                others = (kv for kv in range(heads.kv) if kv != planned)
                own = range(head, head + 1)
                one = (kv for kv in others if _reads(share, result[:, column], weights, x, own, kv))
                read = next((f"KV head {kv}" for kv in one), "no KV head of the model")
                yield f"query head {head} on rank {member} read {read}, and KV head {planned} is planned"


def _reads(share: Share, result: Tensor, weights: Projections, x: Tensor, query: range, kv: int) -> bool:
    """Whether a query head gives that result with some KV head."""
    return share.arithmetic.same(result, _heads(share, weights, x, query, range(kv, kv + 1))[:, 0])
