"""Rows cut by a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_models import VLLM

from shardlint.architectures import CacheRow, Extent, Row
from shardlint.engines.cutting import Cutting
from shardlint.engines.versions import Version
from shardlint.engines.vllm.cutting import cutting
from shardlint.layout import Division, Sizes
from shardlint.layout.share import uneven_pieces

OLD = cutting(Version((0, 9, 2)))


def division(tensor: int = 1, data: int = 1, *, expert_parallel: bool = False, table: Cutting = VLLM) -> Division:
    sizes = Sizes(tensor, data_parallel_size=data, enable_expert_parallel=expert_parallel)
    return Division.of(sizes, table)


@given(st.sampled_from(["query_head", "column", "row"]), st.integers(1, 512), st.integers(1, 64), st.integers(1, 64))
def test_split_pieces_sum_to_the_whole_or_are_refused(piece: str, count: int, unit: int, ways: int) -> None:
    extent = Extent(count, piece, unit)  # type: ignore[arg-type]
    share = division(ways).elements(extent)
    if count % ways:
        assert share is None
    else:
        assert share is not None
        assert share * ways == count * unit


@given(st.integers(1, 300_000), st.integers(1, 64))
def test_the_vocabulary_is_padded_to_64_before_it_is_cut(vocabulary: int, ways: int) -> None:
    share = division(ways).share(Extent(vocabulary, "vocabulary"))
    padded = -(-vocabulary // 64) * 64
    assert (share is None) == bool(padded % ways)
    assert share is None or share * ways == padded


@given(st.integers(1, 64), st.integers(1, 128))
def test_kv_heads_split_or_replicate(heads: int, ways: int) -> None:
    share = division(ways).share(Extent(heads, "kv_head"))
    if heads % ways == 0:
        assert share == heads // ways
    elif ways % heads == 0:
        assert share == 1
    else:
        assert share is None


@given(st.integers(1, 300), st.integers(1, 16), st.integers(1, 8), st.sampled_from([VLLM, OLD]))
def test_experts_are_spread_without_loss(experts: int, tensor: int, data: int, table: Cutting) -> None:
    divided, extent = division(tensor, data, expert_parallel=True, table=table), Extent(experts, "expert")
    shares = [divided.share(extent, index) for index in range(tensor * data)]
    assert sum(share or 0 for share in shares) == experts


def test_the_remainder_of_experts_goes_to_the_first_ranks_and_once_went_to_the_last() -> None:
    new, old = (division(4, expert_parallel=True, table=table) for table in (VLLM, OLD))
    assert [new.share(Extent(10, "expert"), index) for index in range(4)] == [3, 3, 2, 2]
    assert [old.share(Extent(10, "expert"), index) for index in range(4)] == [2, 2, 2, 4]


def test_more_expert_ranks_than_experts_leave_some_without() -> None:
    divided = division(16, expert_parallel=True)
    assert [divided.share(Extent(8, "expert"), index) for index in (0, 7, 8, 15)] == [1, 1, 0, 0]


def test_without_expert_parallelism_the_width_is_cut_by_tp_times_dp() -> None:
    width = Extent(14336, "expert_width")
    assert division(2, 4).share(width) == 14336 // 8
    assert division(2, 4, expert_parallel=True).share(width) == 14336
    assert division(1, 3).share(Extent(512, "expert_width")) is None


def test_narrow_experts_are_padded_for_their_tensor_parallel_ranks_before_they_are_cut() -> None:
    width = Extent(3072, "expert_width", least_tensor_share=256)
    assert division(8).share(width) == 384
    assert division(16).share(width) == 256
    assert division(16, 2).share(width) == 128
    assert division(16, expert_parallel=True).share(width) == 3072


@pytest.mark.parametrize(("redundant", "experts_here"), [(0, 16), (8, 17)])
def test_load_balancing_adds_copies_of_experts(redundant: int, experts_here: int) -> None:
    sizes = Sizes(8, enable_expert_parallel=True, enable_eplb=True, num_redundant_experts=redundant)
    assert Division.of(sizes, VLLM).share(Extent(128, "expert")) == experts_here


def test_load_balancing_wants_as_many_experts_on_every_rank() -> None:
    row = Row("experts.w2", (Extent(64),), experts=Extent(128, "expert"))
    sizes = Sizes(8, enable_expert_parallel=True, enable_eplb=True, num_redundant_experts=1)
    assert [str(one) for one in uneven_pieces(sizes, (row,), VLLM)] == ["129 experts do not divide by 8"]


def test_a_bias_is_cut_as_the_outputs_are_and_whole_behind_a_row_cut() -> None:
    column = Row("fc1", (Extent(64, "column"),), Extent(10), bias=True)
    row = Row("fc2", (Extent(10),), Extent(64, "row"), bias=True)
    assert division(4).bits(column, 16) == 16 * (16 * 10 + 16)
    assert division(4).bits(row, 16) == 16 * (10 * 16 + 10)


def test_merged_outputs_are_cut_each_for_itself() -> None:
    merged = Row(
        "qkv", (Extent(32, "query_head", 128), Extent(8, "kv_head", 128), Extent(8, "kv_head", 128)), Extent(2)
    )
    assert division(16).bits(merged, 16) == 16 * (2 + 1 + 1) * 128 * 2


def test_a_whole_cache_is_not_cut() -> None:
    latent = CacheRow(range(61), Extent(1), 576)
    assert division(8).cache_elements(latent) == 576


def test_an_uneven_piece_says_what_it_is() -> None:
    rows = (
        Row("embed", (Extent(151936, "vocabulary"),), Extent(4)),
        Row("qkv", (Extent(28, "query_head"), Extent(4, "kv_head"))),
        Row("o", (Extent(4),), Extent(28, "query_head")),
    )
    said = [(str(one), one.row, one.effect) for one in uneven_pieces(Sizes(6), rows, VLLM)]
    assert said == [
        ("151936 vocabulary rows do not divide by 6", "embed", "fails-while-loading"),
        ("28 query heads do not divide by 6", "qkv", "refuses-at-start"),
        ("4 KV heads neither split nor replicate evenly over 6 ranks", "qkv", "fails-while-loading"),
    ]
