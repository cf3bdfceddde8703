"""The layers of every stage in turn, and what one stage hands to the next.

Each rank of a stage sends its 1/TP of every tensor to its peer in the next one, where the ranks of a tensor parallel
group gather the slices again: the link between stages then carries each element once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from shardlint.smoke.ranks.arithmetic import WHOLE
from shardlint.smoke.ranks.network import Network
from shardlint.smoke.ranks.share import Share


class State(NamedTuple):
    """What one stage hands to the next, both [tokens, hidden]."""

    hidden_states: Tensor
    residual: Tensor

    def normed(self, added: bool = True) -> tuple[Tensor, Tensor]:
        """The new residual, and the input of the next block (the remainder stands for the norm)."""
        residual = self.residual + self.hidden_states if added else self.hidden_states
        return residual, residual.remainder(7) - 3


def all_layers(net: Network) -> None:
    """All layers of this rank's stage against the unsplit model, in whole numbers: not one may differ at the end."""
    share = Share(net, WHOLE)
    plan, stage = net.plan, net.place.pipeline
    net.begin("stage-hand-off" if stage > 0 else "all-layers")
    unsplit = _unsplit(share)
    state = _take_over(share, unsplit) if stage > 0 else unsplit[0]
    net.begin("all-layers")
    added = plan.deviation("residual-added", net.rank, True)
    for layer in range(*plan.deviation("layers", net.rank, plan.stages[stage])):
        residual, x = state.normed(added)
        state = State(net.sum("tp", share.part(share.mlp(layer), x)), residual)
    net.result(*state)
    if stage + 1 < len(plan.stages):
        _hand_over(share, state)
    else:
        net.claim("all-layers", "world", _same(state, unsplit[-1]), _difference(state, unsplit, plan.layers))


def _unsplit(share: Share) -> list[State]:
    """The states of the whole model on one device: before the first layer, and after each."""
    states = [State(share.inputs(), torch.zeros_like(share.inputs()))]
    for layer in range(share.plan.layers):
        residual, x = states[-1].normed()
        states.append(State(share.mlp(layer)(x), residual))
    return states


def _hand_over(share: Share, state: State) -> None:
    net = share.net
    if not net.plan.deviation("residual", net.rank, True):
        state = state._replace(residual=torch.zeros_like(state.residual))
    index = net.plan.deviation("slice", net.rank, net.place.tensor)
    for tensor in state:
        net.send(net.place.pipeline + 1, _slice(tensor, index, share.ways))


def _take_over(share: Share, unsplit: Sequence[State]) -> State:
    """Both tensors from the stage before, judged by what its last layer gives in the unsplit model."""
    net, ways = share.net, share.ways
    start = net.plan.stages[net.place.pipeline][0]
    wanted = unsplit[start]
    received = []
    for whole in wanted:
        room = torch.empty_like(_slice(whole, net.place.tensor, ways))
        piece = net.receive(net.place.pipeline - 1, room)
        received.append(net.gather("tp", piece) if piece.numel() < whole.numel() else [piece])
    state = State(*(torch.cat(pieces).reshape(wanted.residual.shape) for pieces in received))
    message = _swapped(share, received[1], wanted.residual) or _difference(state, unsplit, start)
    net.claim("stage-hand-off", "pp", _same(state, wanted), message)
    return state


def _slice(tensor: Tensor, index: int, ways: int) -> Tensor:
    """The 1/TP of a tensor, flat, that goes over the wire; all of it where its elements do not divide, as in vLLM."""
    if tensor.numel() % ways:
        return tensor.flatten()
    return tensor.reshape(ways, -1)[index]


def _swapped(share: Share, pieces: list[Tensor], whole: Tensor) -> str:
    """Which ranks of the tensor parallel group have received another slice than theirs."""
    slices = [_slice(whole, index, share.ways) for index in range(len(pieces))]
    wrong = []
    for index, (rank, piece) in enumerate(zip(share.plan.group_of("tp", share.net.rank), pieces, strict=False)):
        other = next((other for other, one in enumerate(slices) if torch.equal(piece, one)), index)
        if other != index:
            wrong.append(f"rank {rank} received slice {other} of {share.ways}, and slice {index} is its own")
    return "; ".join(wrong)


def _same(state: State, wanted: State) -> bool:
    return all(torch.equal(seen, right) for seen, right in zip(state, wanted, strict=True))


def _difference(state: State, unsplit: Sequence[State], layers: int) -> str:
    """What is wrong with a state that should be that after the first `layers` layers."""
    other = next((number for number, wanted in enumerate(unsplit) if _same(state, wanted)), None)
    if other is not None:
        return f"these are the tensors after {other} layers, and {layers} are planned up to here"
    wrong = [
        f"{name}: {WHOLE.difference(seen, wanted)}"
        for name, seen, wanted in zip(State._fields, state, unsplit[layers], strict=True)
        if not torch.equal(seen, wanted)
    ]
    return f"not what the first {layers} layers give; {'; '.join(wrong)}"
