"""Experts whose width does not divide by the ranks that they are cut over."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal
from shardlint.rules._words import heads_do_not_divide, named, product, tensor_advice


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
    data_parallel_size: Located[int] | None = None,
    pipeline_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    piece = next((piece for piece in layout.uneven if piece.piece == "expert_width"), None)
    sizes = layout.sizes
    if piece is None or (piece.ways == sizes.tensor_parallel_size and heads_do_not_divide(layout.uneven)):
        return
    degrees = [
        ("DP", sizes.data_parallel_size),
        ("PP", sizes.pipeline_parallel_size),
        ("PCP", sizes.prefill_context_parallel_size),
        ("TP", sizes.tensor_parallel_size),
    ]
    asserted = sizes.enable_expert_parallel or piece.ways != sizes.expert_group_size
    if asserted:
        why = "and this class asserts that all ranks do, of whatever kind of parallelism"
    else:
        del degrees[1]
        why = "and without expert parallelism all these ranks share each expert"
    written = (tensor_parallel_size, data_parallel_size, pipeline_parallel_size)
    yield Problem(
        at=next((size for size in written if size is not None and size.value > 1), tensor_parallel_size),
        message=f"every expert is {piece.count} wide, which {product(*degrees)} does not divide, {why}: "
        f"{named(engine, engine_version)} fails while it builds the first of them",
        sum=f"{piece.count} columns of every expert % {piece.ways} = {piece.count % piece.ways}",
        help=(*(() if asserted else ("--enable-expert-parallel",)), *tensor_advice(legal, tensor_parallel_size)),
    )


RULE = Rule("SL402", "expert-width", "ep-moe", "error", "fails-while-loading", judge)
