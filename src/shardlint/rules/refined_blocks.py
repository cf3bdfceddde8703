"""Experts whose quantisation blocks are made finer to fit the ranks, at the price of the fast kernels."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._blocks import not_whole_blocks, splits_of
from shardlint.rules._words import named


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
    data_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    splits = splits_of(layout.makeshifts, "slow")
    if splits:
        outcome = f"{named(engine, engine_version)} makes the blocks finer and takes its slower kernels"
        yield not_whole_blocks(splits, outcome, tensor_parallel_size, data_parallel_size, legal)


RULE = Rule("SL603", "refined-blocks", "tp-quant-block", "note", "slow", judge)
