"""Experts spread over ranks: how tokens reach them, and how their results come back.

vLLM's default gathers the tokens of all ranks on all ranks, lets each add what its own experts make of them, and
scatters the sums. Other backends send each token to the ranks of its experts alone: an all-to-all. Ranks have uneven
numbers of tokens, some none; and once all tokens go to the same few experts, so that most ranks have nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from shardlint.layout import Group
from shardlint.smoke import cuts
from shardlint.smoke.plan import Experts
from shardlint.smoke.ranks.moe import ROUTINGS, Layer, Tokens, experts_of, held_by, layer_of, own_tokens
from shardlint.smoke.ranks.share import Share


def gathered(share: Share, kind: str) -> str:
    """Dispatch by all-gather, combine by reduce-scatter, in the groups that hold the tokens."""
    faults = [_gathered(share, kind, routing) for routing in ROUTINGS]
    return next((fault for fault in faults if fault), "")


def _gathered(share: Share, kind: str, routing: str) -> str:
    net, plan, arithmetic = share.net, share.plan, share.arithmetic
    layer, experts = layer_of(share), experts_of(share)
    own = own_tokens(share, cuts.token_source(plan, net.rank), routing)
    rows = {rank: cuts.own_tokens(cuts.token_source(plan, rank)) for rank in plan.world_of(net.rank)}
    tokens, way_back = own, []
    for gathering in cuts.dispatch(plan):
        of_members = [rows[rank] for rank in plan.group_of(gathering, net.rank)]
        tokens = Tokens(*(net.gather_uneven(gathering, tensor, of_members) for tensor in tokens))
        way_back.append((gathering, of_members))
        rows = {rank: sum(rows[member] for member in plan.group_of(gathering, rank)) for rank in rows}
    held = held_by(share, experts, net.rank)
    part = layer.cut(held, *cuts.expert_shard(plan, net.rank)).weighed(tokens, held)
    parts, result = net.gather(kind, part), part
    for gathering, of_members in reversed(way_back):
        result = net.sum_uneven(gathering, result, of_members)
    if "ep" not in cuts.dispatch(plan):
        result = net.sum("tp", result)
    whole = layer.weighed(own, range(experts.number))
    if arithmetic.same(result, whole):
        return ""
    found = f"{routing} routing: {arithmetic.difference(result, whole)}: "
    return found + _culprits(share, layer, tokens, plan.group_of(kind, net.rank), parts)


def _culprits(share: Share, layer: Layer, tokens: Tokens, members: Group, parts: list[Tensor]) -> str:
    """Which members added something else than their experts make of the tokens."""
    plan, experts = share.plan, experts_of(share)

    def made(held: range, rank: int) -> Tensor:
        return layer.cut(held, *cuts.expert_shard(plan, rank)).weighed(tokens, held)

    planned = {rank: cuts.held_experts(plan, experts, rank) for rank in members}
    if not plan.sizes.enable_expert_parallel:
        return share.arithmetic.culprits(members, parts, [made(planned[rank], rank) for rank in members])
    wrong = []
    for rank, part in zip(members, parts, strict=True):
        if not share.arithmetic.same(part, made(planned[rank], rank)):
            others = (held for held in _others(planned, rank, experts) if share.arithmetic.same(part, made(held, rank)))
            added = next((f"what {_named(held)} make" for held in others), "what no experts make")
            wrong.append(f"rank {rank} added {added}, and {_named(planned[rank])} are planned")
    return "; ".join(wrong) or "every rank's part is right, so their sum is at fault"


def _others(planned: dict[int, range], rank: int, experts: Experts) -> Iterator[range]:
    """Runs of experts that a rank may hold by mistake: one off, or another rank's."""
    own = planned[rank]
    for shift in (1, -1):
        yield range(max(0, own.start + shift), min(experts.number, own.stop + shift))
    yield from planned.values()


def _named(held: range) -> str:
    return f"experts {held.start}-{held.stop - 1}" if held else "no experts"


def sent(share: Share, kind: str) -> str:
    """Dispatch and combine by all-to-all: every token goes to the ranks of its experts, and their results come back."""
    faults = [_sent(share, kind, routing) for routing in ROUTINGS]
    return next((fault for fault in faults if fault), "")


def _sent(share: Share, kind: str, routing: str) -> str:
    net, plan, experts, layer = share.net, share.plan, experts_of(share), layer_of(share)
    members = plan.group_of(kind, net.rank)
    owners = [rank for rank in members for _expert in cuts.held_experts(plan, experts, rank)]
    own = own_tokens(share, net.index(kind), routing)
    token, expert, sending = _addressed(own, members, owners)
    once = [1] * len(members)
    counts = sending, net.exchange(kind, torch.tensor(sending, device=net.device), once, once).tolist()
    numbers = net.exchange(kind, expert, *counts)
    states = net.exchange(kind, own.hidden_states[token], *counts)
    held = held_by(share, experts, net.rank)
    back = net.exchange(kind, _results(layer, held, states, numbers), *reversed(counts))
    total = torch.zeros_like(own.hidden_states)
    total.index_add_(0, token, back * own.weights[token, expert].unsqueeze(-1))
    if strangers := sorted(set(numbers.tolist()).difference(held)):
        theirs = ", ".join(f"expert {number}, which rank {owners[number]} has" for number in strangers)
        return f"{routing} routing: rank {net.rank} holds {_named(held)} and got tokens for {theirs} by the plan"
    if share.arithmetic.same(total, layer.weighed(own, range(experts.number))):
        return ""
    right = layer.each(own.hidden_states)[expert, token]
    sent_back = zip(expert.tolist(), back, right, strict=True)
    wrong = sorted({number for number, seen, one in sent_back if not share.arithmetic.same(seen, one)})
    ranks = sorted({owners[number] for number in wrong})
    return f"{routing} routing: what ranks {ranks} sent back is not what experts {wrong} make"


def _addressed(own: Tokens, members: Group, owners: list[int]) -> tuple[Tensor, Tensor, list[int]]:
    """Every token once for each of its experts, sorted by the ranks that they go to, and how many go to each."""
    token, expert = own.weights.nonzero(as_tuple=True)
    to = [members.index(owners[number]) for number in expert.tolist()]
    order = torch.tensor(to, device=token.device, dtype=torch.int64).argsort(stable=True)
    return token[order], expert[order], [to.count(place) for place in range(len(members))]


def _results(layer: Layer, held: range, states: Tensor, numbers: Tensor) -> Tensor:
    """What a rank's experts make of the rows that it was sent, each for the expert of its number; zeros for others."""
    results = torch.zeros_like(states)
    for expert in held:
        mine = numbers == expert
        results[mine] = layer.cut(range(expert, expert + 1), 0, 1).each(states[mine])[0]
    return results
