"""A vision or audio tower that the tensor parallel ranks cannot cut evenly."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.architectures import Rows
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._words import named, tensor_advice

WHOLE_TOWERS = "--mm-encoder-tp-mode data"


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    layout: Layout,
    rows: Rows,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
) -> Iterator[Problem]:
    towers = {row.name: row.tower for row in rows.weights if row.tower != "none"}
    uneven = [piece for piece in layout.uneven if piece.row in towers and piece.piece != "quantisation_block"]
    if not uneven:
        return
    piece, tp = uneven[0], tensor_parallel_size.value
    what = f"{piece.count} heads" if piece.piece == "vision_head" else f"a width of {piece.count}"
    whole = (WHOLE_TOWERS,) if towers[piece.row] == "by_mode" else ()
    yield Problem(
        at=tensor_parallel_size,
        message=f"the tower of the model has {what} ({piece.row}), which tensor parallel size {tp} does not divide: "
        f"{named(engine, engine_version)} fails while it builds the tower",
        sum=f"{piece.count} % {tp} = {piece.count % tp}",
        help=(*tensor_advice(legal, tensor_parallel_size), *whole),
    )


RULE = Rule(
    "SL106", "vision-heads", "tp-vision", "error", "fails-while-loading", judge, applies, engines=("vllm", "sglang")
)
