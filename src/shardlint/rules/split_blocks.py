"""Quantisation blocks that a cut would split, which the engine refuses."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._blocks import advice, in_words, splits_of, sum_of, written_size
from shardlint.rules._words import named


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
    data_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    splits = splits_of(layout.uneven, "fails-while-loading")
    if not splits:
        return
    yield Problem(
        at=written_size(tensor_parallel_size, data_parallel_size),
        message=f"the checkpoint is {splits[0][1].scheme}, and a rank's share of {in_words(splits)} is not whole "
        f"blocks: {named(engine, engine_version)} fails while it builds the layer",
        sum=sum_of(splits[0][1]),
        help=advice(splits, legal, tensor_parallel_size),
    )


RULE = Rule("SL601", "split-blocks", "tp-quant-block", "error", "fails-while-loading", judge)
