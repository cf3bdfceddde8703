"""The vocabulary cut into equal runs of rows: the embedding before the first layer, the output head after the last.

The number of rows is padded first, so the last ranks have rows that stand for no token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from shardlint.smoke import cuts
from shardlint.smoke.plan import Scaled
from shardlint.smoke.ranks.share import Share

PADDING = 9
"""In every element of a padded row: more than any other, so that it is seen where it does not belong."""


def embedding(share: Share, kind: str) -> str:
    """Each rank looks up the tokens whose rows it has, zeros stand for the others, one all-reduce: exact in any dtype.

    Asked for are the tokens at both ends of every rank's rows.
    """
    net, plan, vocabulary = share.net, share.plan, _vocabulary(share)
    members, whole = plan.group_of(kind, net.rank), _rows(share, vocabulary)
    edges = {edge for rank in members for edge in _first_and_last(share, vocabulary, rank)}
    tokens = torch.tensor(sorted(edges), device=net.device)
    start, stop = plan.deviation("vocabulary", net.rank, cuts.vocabulary_rows(plan, vocabulary, net.rank))
    mine = (tokens >= start) & (tokens < stop)
    found = whole[torch.where(mine, tokens, start)] * mine.unsqueeze(-1)
    total, holders = net.sum(kind, found), torch.stack(net.gather(kind, mine.long()))
    for token, seen, right, held in zip(sorted(edges), total, whole[tokens], holders.T, strict=True):
        if not torch.equal(seen, right):
            owner = next(rank for rank in members if token in range(*cuts.vocabulary_rows(plan, vocabulary, rank)))
            gave = [rank for rank, has in zip(members, held, strict=True) if has]
            return f"token {token} of {vocabulary.tried} belongs to rank {owner}, and ranks {gave} looked it up"
    return ""


def output_head(share: Share, kind: str) -> str:
    """Each rank gives the logits of its rows, all are gathered, the padding is dropped: the same token wins."""
    net, plan, arithmetic, vocabulary = share.net, share.plan, share.arithmetic, _vocabulary(share)
    whole, x = _rows(share, vocabulary), share.inputs().abs()
    start, stop = plan.deviation("vocabulary", net.rank, cuts.vocabulary_rows(plan, vocabulary, net.rank))
    parts = net.gather(kind, x @ whole[start:stop].T)
    kept = vocabulary.tried if plan.deviation("padding", net.rank, True) else cuts.padded(vocabulary)
    logits, wanted = torch.cat(parts, dim=1)[:, :kept], x @ whole[: vocabulary.tried].T
    winners = logits.argmax(dim=1)
    if (beyond := winners[winners >= vocabulary.tried]).numel():
        return f"row {int(beyond[0])} wins, which is padding: the vocabulary has {vocabulary.tried} tokens"
    if arithmetic.same(logits, wanted):
        return ""
    planned = [whole[slice(*cuts.vocabulary_rows(plan, vocabulary, rank))] for rank in plan.group_of(kind, net.rank)]
    culprits = arithmetic.culprits(plan.group_of(kind, net.rank), parts, [x @ rows.T for rows in planned], "rows")
    return f"{arithmetic.difference(logits, wanted)}: {culprits}"


def _vocabulary(share: Share) -> Scaled:
    assert share.plan.vocabulary is not None
    return share.plan.vocabulary


def _rows(share: Share, vocabulary: Scaled) -> Tensor:
    """[padded vocabulary, hidden]."""
    rows = share.weights("vocabulary", cuts.padded(vocabulary), share.plan.hidden.tried)
    rows[vocabulary.tried :] = PADDING
    return rows


def _first_and_last(share: Share, vocabulary: Scaled, rank: int) -> tuple[int, ...]:
    """The tokens at both ends of a rank's rows; none where it has nothing but padding."""
    start, stop = cuts.vocabulary_rows(share.plan, vocabulary, rank)
    stop = min(stop, vocabulary.tried)
    return (start, stop - 1) if start < stop else ()
