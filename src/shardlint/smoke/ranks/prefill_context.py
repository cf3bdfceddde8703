"""Prefill context parallelism: the tokens of a prompt over ranks, and the keys and values of all gathered again."""

from __future__ import annotations

import torch

from shardlint.smoke import cuts
from shardlint.smoke.ranks.attention import attend, causal, project, projections
from shardlint.smoke.ranks.share import Share


def prefilled(share: Share, kind: str) -> str:
    """Each rank computes its chunks of a prompt that does not divide, and attends to the keys of all."""
    net, plan, arithmetic, heads = share.net, share.plan, share.arithmetic, share.plan.heads
    assert heads is not None
    members, weights = plan.group_of(kind, net.rank), projections(share, heads)
    length = 4 * len(members) - 1
    tokens = [cuts.prefill_tokens(length, position, len(members)) for position in range(len(members))]
    own = list(plan.deviation("chunks", net.rank, tokens[net.index(kind)]))
    x = share.inputs(length)
    held = cuts.kv_heads(plan, heads, net.rank)
    query = project(arithmetic, x[own], weights.query, cuts.query_heads(plan, heads, net.rank))
    rows = [len(part) for part in tokens]
    wanted = [project(arithmetic, x, weight, held) for weight in (weights.key, weights.value)]
    order = torch.tensor([token for part in tokens for token in part], device=net.device).argsort()
    key, value = (net.gather_uneven(kind, tensor[own], rows)[order] for tensor in wanted)
    result = attend(arithmetic, query, key, value, causal(length, net.device)[own])
    for name, seen, right in zip(("keys", "values"), (key, value), wanted, strict=True):
        if odd := [token for token in range(length) if not arithmetic.same(seen[token], right[token])]:
            owners = [rank for rank, part in zip(members, tokens, strict=True) if set(odd) & set(part)]
            return f"the {name} of tokens {odd} of {length} are not theirs: they come from ranks {owners}"
    everything = project(arithmetic, x, weights.query, cuts.query_heads(plan, heads, net.rank))
    whole = attend(arithmetic, everything, key, value, causal(length, net.device))[own]
    return "" if arithmetic.same(result, whole) else arithmetic.difference(result, whole)
