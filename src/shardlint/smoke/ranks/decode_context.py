"""Decode context parallelism: the KV cache of a sequence striped over ranks, and their results merged again.

Each rank of a `dcp` group keeps every n-th token (or run of tokens), and reads its tokens for the query heads of all
members. A softmax over a part of the tokens is too large by what the others would have added below the line: its
log-sum-exp says by how much, so that the parts can be weighed and summed. The sums of the heads are then scattered to
the ranks that own them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke import cuts
from shardlint.smoke.plan import HEAD_DIM, Heads
from shardlint.smoke.ranks.arithmetic import CLAMP, Arithmetic
from shardlint.smoke.ranks.attention import project, projections
from shardlint.smoke.ranks.share import Share

MERGED = Arithmetic("float32", torch.float32, 1e-5)
"""The merge is done in float32 whatever the model's dtype is."""


class Partial(NamedTuple):
    """What some tokens give each query head: [heads, HEAD_DIM], and the logarithm of their weight: [heads]."""

    out: Tensor
    log_sum_exp: Tensor


def merged(share: Share, kind: str) -> str:
    """A long sequence, whose last token is one too many for an even split, and one of a single token."""
    every = len(share.plan.group_of(kind, share.net.rank)) * share.plan.interleave.tried
    faults = [_of_sequence(share, kind, length) for length in (3 * every + 1, 1)]
    return next((fault for fault in faults if fault), "")


def _of_sequence(share: Share, kind: str, length: int) -> str:
    net, plan, arithmetic, heads = share.net, share.plan, share.arithmetic, share.plan.heads
    assert heads is not None
    members, index = plan.group_of(kind, net.rank), net.index(kind)
    query, key, value = _projected(share, heads, length)
    queries = torch.cat(net.gather(kind, query))
    run = plan.interleave.tried
    stripes = [cuts.stripe(length, position, len(members), run) for position in range(len(members))]
    planned = [read(arithmetic, queries, key[stripe], value[stripe]) for stripe in stripes]
    own = planned[plan.deviation("stripe", net.rank, index)]
    weight = own.log_sum_exp if plan.deviation("log-sum-exp", net.rank, True) else torch.zeros_like(own.log_sum_exp)
    weights = net.gather(kind, weight)
    part = _weighed(arithmetic, own.out, weight, weights)
    parts, result = net.gather(kind, part), net.sum_uneven(kind, part, [len(query)] * len(members))
    whole = read(arithmetic, query, key, value).out
    if arithmetic.same(result, whole):
        return ""
    found = f"{length} tokens: {arithmetic.difference(result, whole)}: "
    right = [partial.log_sum_exp for partial in planned]
    if light := [rank for rank, seen, one in zip(members, weights, right, strict=True) if not torch.equal(seen, one)]:
        return found + f"ranks {light} gave another log-sum-exp than that of their tokens"
    wanted = [_weighed(arithmetic, partial.out, partial.log_sum_exp, right) for partial in planned]
    return found + arithmetic.culprits(members, parts, wanted, "tokens")


def _projected(share: Share, heads: Heads, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of the newest token the query heads of this rank, of all tokens the KV head that it holds, for each of them."""
    arithmetic, weights, rank = share.arithmetic, projections(share, heads), share.net.rank
    x = share.inputs(length)
    query = project(arithmetic, x[-1:], weights.query, cuts.query_heads(share.plan, heads, rank))[0]
    held = cuts.kv_heads(share.plan, heads, rank)
    key, value = (project(arithmetic, x, weight, held) for weight in (weights.key, weights.value))
    return query, key[:, 0], value[:, 0]


def read(arithmetic: Arithmetic, query: Tensor, key: Tensor, value: Tensor) -> Partial:
    """What the tokens of `key` and `value` give [heads, HEAD_DIM] queries; no tokens give zeros, of no weight."""
    scores = query.float() @ key.float().T
    if arithmetic.exact:  # the scores themselves are the weights, because a softmax has fractions
        return Partial(scores.clamp(-CLAMP, CLAMP) @ value.float(), torch.zeros(len(query), device=query.device))
    scores = scores / HEAD_DIM**0.5
    out = scores.softmax(dim=-1) @ value.float() if len(key) else torch.zeros_like(query, dtype=torch.float32)
    return Partial(out.to(query.dtype), scores.logsumexp(dim=-1))


def _weighed(arithmetic: Arithmetic, out: Tensor, weight: Tensor, weights: list[Tensor]) -> Tensor:
    """The share that a partial result has in the whole one."""
    if arithmetic.exact:
        return out
    share = (weight - torch.stack(weights).logsumexp(dim=0)).exp()
    return (out.float() * share.unsqueeze(-1)).to(out.dtype)
