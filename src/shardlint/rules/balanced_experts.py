"""Expert load balancing of experts whose quantisation method takes no part in it."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import named


def applies(enable_eplb: Located[bool]) -> bool:
    return enable_eplb.value


def judge(
    layout: Layout, enable_eplb: Located[bool], engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem]:
    unmet = next((unmet for unmet in layout.unmet if unmet.kind == "balanced_experts"), None)
    if unmet is None or unmet.row is None or unmet.row.scheme is None:
        return
    yield Problem(
        at=enable_eplb,
        message=f"the experts are stored in {unmet.row.scheme.name}, by a method that takes no part in expert load "
        f"balancing: {named(engine, engine_version)} fails while it builds the first layer with experts",
        help=("leave expert load balancing out",),
    )


RULE = Rule("SL405", "balanced-experts", "ep-moe", "error", "fails-while-loading", judge, applies)
