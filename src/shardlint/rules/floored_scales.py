"""Scales of a quantised weight that lose a part of a block, and nothing says so."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._blocks import not_whole_blocks, splits_of
from shardlint.rules._words import named

SINCE = Version.of("0.33")
"""The release that was seen to load such shares; what earlier ones do was not recorded."""


def applies(engine_version: Located[Version]) -> bool:
    return engine_version.value >= SINCE


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
    data_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    splits = splits_of(layout.makeshifts, "misbehaves")
    if not splits:
        return
    split = splits[0][1]
    outcome = (
        f"{named(engine, engine_version)} loads it with {split.elements // split.block} scales for each output "
        "and says nothing of the inputs that have none"
    )
    yield not_whole_blocks(splits, outcome, tensor_parallel_size, data_parallel_size, legal)


RULE = Rule("SL602", "floored-scales", "tp-quant-block", "warning", "misbehaves", judge, applies)
