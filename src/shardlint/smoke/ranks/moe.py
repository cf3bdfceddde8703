"""A MoE layer: its experts, the tokens that ranks have, and which experts each token goes through."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke import cuts
from shardlint.smoke.plan import Experts
from shardlint.smoke.ranks.arithmetic import Arithmetic
from shardlint.smoke.ranks.share import Share

LARGEST_WEIGHT = 3
ROUTINGS = ("spread", "narrow")
"""How tokens choose experts: at equal distances, or all the same first ones."""


class Tokens(NamedTuple):
    """Hidden states [tokens, hidden] and what each token is routed to: [tokens, experts], 0 where it is not."""

    hidden_states: Tensor
    weights: Tensor


class Layer(NamedTuple):
    """Some experts of one MoE layer: `up` is [experts, hidden, width], `down` is [experts, width, hidden]."""

    up: Tensor
    down: Tensor
    arithmetic: Arithmetic

    def each(self, x: Tensor) -> Tensor:
        """[tokens, hidden] -> [experts, tokens, hidden]."""
        return self.arithmetic.activation(x @ self.up) @ self.down

    def weighed(self, tokens: Tokens, held: range) -> Tensor:
        """What these experts, which have the numbers `held`, add to each token: [tokens, hidden]."""
        weights = tokens.weights[:, held.start : held.stop].T.unsqueeze(-1)
        return (self.each(tokens.hidden_states) * weights).sum(dim=0)

    def cut(self, held: range, index: int, ways: int) -> Layer:
        """Of the experts with the numbers `held` one slice of the width."""
        up, down = self.up[held.start : held.stop], self.down[held.start : held.stop]
        return self._replace(up=up.chunk(ways, dim=2)[index], down=down.chunk(ways, dim=1)[index])


def experts_of(share: Share) -> Experts:
    assert share.plan.experts is not None
    return share.plan.experts


def held_by(share: Share, experts: Experts, rank: int) -> range:
    planned = cuts.held_experts(share.plan, experts, rank)
    return range(*share.plan.deviation("experts", rank, (planned.start, planned.stop)))


def layer_of(share: Share) -> Layer:
    """All experts, whole."""
    experts, hidden = experts_of(share), share.plan.hidden.tried
    number, width = experts.number, experts.width.tried
    up = share.weights("experts up", hidden, number * width).reshape(hidden, number, width).transpose(0, 1)
    down = share.weights("experts down", width, number * hidden).reshape(width, number, hidden).transpose(0, 1)
    return Layer(up, down, share.arithmetic)


def own_tokens(share: Share, source: int, routing: str) -> Tokens:
    """The tokens of a source, routed in one of the ways."""
    experts, tokens = experts_of(share), cuts.own_tokens(source)
    states = share.inputs(tokens, f"tokens of {source}")
    weights = torch.zeros(tokens, experts.number, dtype=states.dtype, device=share.net.device)
    for token in range(tokens):
        for choice, number in enumerate(_chosen(experts, 7 * source + 3 * token if routing == "spread" else None)):
            weights[token, number] = 1 + (token + choice) % LARGEST_WEIGHT
    return Tokens(states, weights)


def _chosen(experts: Experts, first: int | None) -> list[int]:
    apart = experts.number // experts.per_token if first is not None else 1
    return [((first or 0) + choice * apart) % experts.number for choice in range(experts.per_token)]
