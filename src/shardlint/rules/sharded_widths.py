"""Widths other than heads, experts and vocabulary that do not divide by the tensor parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._words import heads_do_not_divide, named, tensor_advice

WIDTHS = {"column": "outputs", "row": "inputs"}


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    widths = [piece for piece in layout.uneven if piece.piece in WIDTHS]
    if not widths or heads_do_not_divide(layout.uneven):
        return
    tp = tensor_parallel_size.value
    what = ", ".join(f"{piece.row} ({piece.count} {WIDTHS[piece.piece]})" for piece in widths)
    yield Problem(
        at=tensor_parallel_size,
        message=f"tensor parallel size {tp} does not divide {what}: {named(engine, engine_version)} fails while it "
        "builds the layer",
        sum="; ".join(f"{piece.count} {WIDTHS[piece.piece]} % {tp} = {piece.count % tp}" for piece in widths),
        help=tensor_advice(legal, tensor_parallel_size),
    )


RULE = Rule(
    "SL108", "sharded-widths", "tp-width", "error", "fails-while-loading", judge, applies, engines=("vllm", "sglang")
)
