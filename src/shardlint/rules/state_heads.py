"""Heads or groups of a recurrent state that do not divide by the tensor parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._words import named, tensor_advice

KINDS = {"state_group": "groups", "state_head": "heads"}


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    uneven = [piece for piece in layout.uneven if piece.piece in KINDS]
    if not uneven:
        return
    piece, tp = uneven[0], tensor_parallel_size.value
    yield Problem(
        at=tensor_parallel_size,
        message=f"the recurrent state has {piece.count} {KINDS[piece.piece]} ({piece.row}), which tensor parallel size "
        f"{tp} does not divide: {named(engine, engine_version)} fails while it builds the layer",
        sum=f"{piece.count} {KINDS[piece.piece]} % {tp} = {piece.count % tp}",
        help=tensor_advice(legal, tensor_parallel_size),
    )


RULE = Rule("SL107", "state-heads", "tp-mamba", "error", "fails-while-loading", judge, applies)
