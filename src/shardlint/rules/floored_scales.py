"""Scales of a quantised weight that lose a part of a block, and nothing says so."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._blocks import advice, in_words, splits_of, sum_of, written_size
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
    yield Problem(
        at=written_size(tensor_parallel_size, data_parallel_size),
        message=f"the checkpoint is {split.scheme}, and a rank's share of {in_words(splits)} is not whole blocks: "
        f"{named(engine, engine_version)} loads it with {split.elements // split.block} scales for each output "
        "and says nothing of the inputs that have none",
        sum=sum_of(split),
        help=advice(splits, legal, tensor_parallel_size),
    )


RULE = Rule("SL602", "floored-scales", "tp-quant-block", "warning", "misbehaves", judge, applies)
