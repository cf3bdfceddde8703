"""Quantisation blocks that ranks split, in words, the same for every rule on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from shardlint.findings import Located, Problem
from shardlint.layout import Degree, Legal, Sizes, Split, Uneven
from shardlint.rules._words import FLAGS, respelled_all

MOST_NAMED = 3
"""Blocks that a message names; the others are counted."""

WHAT = {"outs": "outputs", "ins": "inputs", "width": "columns of every expert", "hidden": "inputs of every expert"}


def not_whole_blocks(
    splits: Sequence[tuple[str, Split]],
    outcome: str,
    tensor: Located[int],
    data: Located[int] | None,
    legal: Legal | None,
) -> Problem:
    """The problem of shares that are no whole blocks; `outcome` says what the engine does about them."""
    first = splits[0][1]
    return Problem(
        at=written_size(tensor, data),
        message=f"the checkpoint is {first.scheme}, and a rank's share of {in_words(splits)} is not whole blocks: "
        f"{outcome}",
        sum=sum_of(first),
        help=advice(splits, legal, tensor),
    )


def splits_of(pieces: Sequence[Uneven], effect: str) -> list[tuple[str, Split]]:
    """The row and the split of each piece with that effect."""
    return [(piece.row, piece.split) for piece in pieces if piece.split is not None and piece.effect == effect]


def in_words(splits: Sequence[tuple[str, Split]]) -> str:
    """`model.layers.#.mlp.down_proj (14784 inputs a rank, blocks of 128)`, and how many more there are."""
    named = [f"{row} ({one.elements} {WHAT[one.dimension]} a rank, blocks of {one.block})" for row, one in splits]
    more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    return ", ".join([*named[:MOST_NAMED], *more])


def sum_of(split: Split) -> str:
    """`29568 inputs / 2 = 14784; 14784 % 128 = 64`."""
    rest = f"{split.elements} % {split.block} = {split.elements % split.block}"
    if split.over == 1:
        return f"{split.elements} {WHAT[split.dimension]}; {rest}"
    return f"{split.elements * split.over} {WHAT[split.dimension]} / {split.over} = {split.elements}; {rest}"


def advice(splits: Sequence[tuple[str, Split]], legal: Legal | None, size: Located[int]) -> tuple[str, ...]:
    """Whole experts where that settles it, and the nearest sizes that split no block."""
    if legal is None:
        return ()
    whole = any(one.dimension == "width" and one.elements * one.over % one.block == 0 for _, one in splits)
    return (*(_with_whole_experts(legal.sizes, legal) if whole else ()), *_sizes_without_makeshift(legal, size))


def _with_whole_experts(sizes: Sizes, legal: Legal) -> Iterator[str]:
    """Whole experts on the same ranks, or, where these split the blocks of other layers too, on as many replicas."""
    ranks = sizes.tensor_parallel_size * sizes.data_parallel_size
    whole = sizes._replace(enable_expert_parallel=True)
    if legal.allows(whole):
        yield f"{FLAGS['tensor_parallel_size']} {sizes.tensor_parallel_size} --enable-expert-parallel"
    elif legal.allows(whole._replace(tensor_parallel_size=1, data_parallel_size=ranks)):
        replicas = f"{FLAGS['tensor_parallel_size']} 1 {FLAGS['data_parallel_size']} {ranks}"
        yield f"{replicas} --enable-expert-parallel"


def _sizes_without_makeshift(legal: Legal, size: Located[int]) -> tuple[str, ...]:
    degree: Degree = "tensor_parallel_size"
    even = (value for value in legal.nearest(degree, size.value) if not legal.makeshifts(degree, value))
    return respelled_all(size, tuple(islice(even, MOST_NAMED)), degree)


def written_size(tensor: Located[int], data: Located[int] | None) -> Located[int]:
    """The size to change: TP where it cuts anything, else DP, which cuts experts."""
    return tensor if tensor.value > 1 or data is None or data.value == 1 else data
