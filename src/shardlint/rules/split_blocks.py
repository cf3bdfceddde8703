"""Quantisation blocks that a cut would split, which the engine refuses."""

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
    splits = splits_of(layout.uneven, "fails-while-loading")
    if splits:
        outcome = f"{named(engine, engine_version)} fails while it builds the layer"
        yield not_whole_blocks(splits, outcome, tensor_parallel_size, data_parallel_size, legal)


RULE = Rule(
    "SL601", "split-blocks", "tp-quant-block", "error", "fails-while-loading", judge, engines=("vllm", "sglang")
)
