"""Experts that cannot be handed out: fewer than the ranks, or not as many to each where load is balanced."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout, Legal, Sizes, Uneven
from shardlint.rules._words import named, tensor_advice


def judge(
    layout: Layout,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    legal: Legal | None = None,
    data_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    piece = next((piece for piece in layout.uneven if piece.piece == "expert"), None)
    if piece is None:
        return
    what, sum_ = _too_few(piece) if piece.too_few else _unbalanced(piece, layout.sizes)
    yield Problem(
        at=tensor_parallel_size if tensor_parallel_size.value > 1 else data_parallel_size or tensor_parallel_size,
        message=f"{what}: {named(engine, engine_version)} fails while it builds the first layer with experts",
        sum=sum_,
        help=tensor_advice(legal, tensor_parallel_size) if piece.too_few else _more_copies(piece, layout.sizes),
    )


def _too_few(piece: Uneven) -> tuple[str, str]:
    what = (
        f"there are {piece.count} experts, and this class wants one at least for each of {piece.ways} tensor parallel"
    )
    return f"{what} ranks, with expert parallelism or without", f"TP {piece.ways} > {piece.count} experts"


def _unbalanced(piece: Uneven, sizes: Sizes) -> tuple[str, str]:
    copies = max(0, sizes.num_redundant_experts)
    what = f"expert load balancing wants as many experts on each of {piece.ways} ranks, and there are {piece.count}"
    total = f"({piece.count - copies} + {copies} redundant)" if copies else f"{piece.count} experts"
    return what, f"{total} % {piece.ways} = {piece.count % piece.ways}"


def _more_copies(piece: Uneven, sizes: Sizes) -> tuple[str, ...]:
    missing = -piece.count % piece.ways
    return (f"--eplb-config '{{\"num_redundant_experts\": {max(0, sizes.num_redundant_experts) + missing}}}'",)


RULE = Rule("SL403", "experts-per-rank", "ep-moe", "error", "fails-while-loading", judge)
