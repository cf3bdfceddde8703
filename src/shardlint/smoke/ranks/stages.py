"""The layers of every stage in turn, and what one stage hands to the next."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shardlint.smoke.ranks.share import Share, State
from shardlint.smoke.ranks.words import difference


def all_layers(share: Share) -> None:
    """The layers of every stage in turn, with the hand-off between the stages, against the unsplit model."""
    net, plan, stage = share.net, share.plan, share.net.place.pipeline
    net.begin("all-layers")
    unsplit = share.unsplit()
    state = _take_over(share, unsplit) if stage > 0 else share.first()
    for layer in range(*plan.deviation("layers", net.rank, plan.stages[stage])):
        residual, x = state.normed()
        state = State(net.sum("tp", share.part(share.mlp(layer), x)), residual)
    net.result(*state)
    if stage + 1 < len(plan.stages):
        _hand_over(share, state)
    else:
        net.claim("all-layers", "world", _same(state, unsplit[-1]), _state_difference(state, unsplit, plan.layers))


def _hand_over(share: Share, state: State) -> None:
    net = share.net
    if not net.plan.deviation("residual", net.rank, True):
        state = state._replace(residual=torch.zeros_like(state.residual))
    for tensor in state:
        net.send(net.place.pipeline + 1, _slice(share, tensor))


def _take_over(share: Share, unsplit: Sequence[State]) -> State:
    """Both tensors from the stage before, judged by what its last layer gives in the unsplit model."""
    net = share.net
    whole = unsplit[0].hidden_states
    pieces = [net.receive(net.place.pipeline - 1, torch.empty_like(_slice(share, whole))) for _ in State._fields]
    state = State(*(_joined(share, piece, whole) for piece in pieces))
    start = net.plan.stages[net.place.pipeline][0]
    message = _state_difference(state, unsplit, start)
    net.claim("stage-hand-off", "pp", _same(state, unsplit[start]), message)
    return state


def _slice(share: Share, tensor: Tensor) -> Tensor:
    """The 1/TP of a tensor, flat, that goes over the wire; all of it where its elements do not divide, as in vLLM."""
    if tensor.numel() % share.ways:
        return tensor.flatten()
    return tensor.reshape(share.ways, -1)[share.net.place.tensor]


def _joined(share: Share, piece: Tensor, whole: Tensor) -> Tensor:
    """What the members of the tensor parallel group have received, in the shape of `whole`."""
    pieces = share.net.gather("tp", piece) if piece.numel() < whole.numel() else [piece]
    return torch.cat(pieces).reshape(whole.shape)


def _same(state: State, wanted: State) -> bool:
    return torch.equal(state.hidden_states, wanted.hidden_states) and torch.equal(state.residual, wanted.residual)


def _state_difference(state: State, unsplit: Sequence[State], layers: int) -> str:
    """What is wrong with a state that should be that after the first `layers` layers."""
    other = next((number for number, wanted in enumerate(unsplit) if _same(state, wanted)), None)
    if other is not None:
        return f"these are the tensors after {other} layers, and {layers} are planned up to here"
    wrong = [
        f"{name}: {difference(seen, wanted)}"
        for name, seen, wanted in zip(State._fields, state, unsplit[layers], strict=True)
        if not torch.equal(seen, wanted)
    ]
    return f"not what the first {layers} layers give; {'; '.join(wrong)}"
