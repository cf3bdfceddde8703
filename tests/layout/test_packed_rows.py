"""What a share of a packed weight takes, and which shares are refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardlint.architectures.schemes import Must, fp8_blocks, grouped_integers, mx, nvfp4
from shardlint.layout.packing import Matrix, Split, first_split, fitted, floored, stored_bits

SIZES = st.integers(1, 64)


@given(SIZES, SIZES)
def test_fp8_blocks_have_one_scale_for_each_begun_block(outs: int, ins: int) -> None:
    bits = stored_bits(Matrix((outs * 100,), ins * 100), fp8_blocks(128, 128, experts=False), False, 16)
    scales = -(-outs * 100 // 128) * -(-ins * 100 // 128)
    assert bits == 8 * outs * ins * 10_000 + 32 * scales


@given(SIZES, SIZES, st.sampled_from([32, 64, 128]))
def test_groups_have_a_scale_and_a_zero_point_for_each_output(outs: int, groups: int, group: int) -> None:
    matrix = Matrix((8 * outs,), group * groups)
    bits = stored_bits(matrix, grouped_integers(4, group, zero_points=True), False, 16)
    assert bits == 8 * outs * (4 * group * groups + (16 + 4) * groups)


@given(SIZES, st.sampled_from([16, 32, 128]))
def test_a_group_that_is_cut_is_dropped_with_its_scale(rest: int, group: int) -> None:
    scheme = grouped_integers(4, group, zero_points=False)
    ins = 10 * group + rest % group
    split = floored(Matrix((8,), ins, ins_over=2), scheme)
    assert (split is None) == (ins % group == 0)
    assert split is None or (split.elements, split.block, split.over) == (ins, group, 2)


def test_a_scheme_that_rounds_up_loses_nothing() -> None:
    assert floored(Matrix((128,), 100), fp8_blocks(128, 128, experts=False)) is None


def test_merged_projections_are_free_for_a_lenient_method_only() -> None:
    merged = Matrix((64, 64), 256, outs_over=2)
    assert isinstance(fitted(merged, fp8_blocks(128, 128, experts=False), 32), Split)
    assert not isinstance(fitted(merged, fp8_blocks(128, 128, experts=False, lenient=True), 32), Split)
    single = Matrix((64,), 256, outs_over=2)
    assert isinstance(fitted(single, fp8_blocks(128, 128, experts=False, lenient=True), 32), Split)


def test_the_last_projection_of_an_uncut_merged_layer_is_free() -> None:
    scheme = fp8_blocks(128, 128, experts=False)
    assert first_split(Matrix((1536, 576), 7168), scheme) is None
    assert first_split(Matrix((576, 1536), 7168), scheme) is not None


def test_experts_take_finer_blocks_where_the_engine_has_them() -> None:
    scheme = fp8_blocks(128, 128, experts=True, lenient=True)
    w13 = Matrix((320, 320), 6144, width=320, hidden=6144, outs_over=8)
    finer = fitted(w13, scheme, 32)
    assert not isinstance(finer, Split)
    assert stored_bits(w13, finer, False, 16) == 8 * 640 * 6144 + 32 * 2 * 5 * 96
    assert isinstance(fitted(w13, scheme, 0), Split)
    assert isinstance(fitted(w13._replace(width=48, outs=(48, 48)), scheme, 32), Split)


def test_padding_is_none_of_the_schemes_business() -> None:
    matrix = Matrix((2880,), 2880, experts=4, width=2880, hidden=2880)
    assert stored_bits(matrix, mx(4, experts=True, must=False, padded=True), True, 16) == 4 * 2880 * (
        4 * 2880 + 8 * 90 + 16
    )


def test_nvfp4_wants_whole_groups_of_linear_layers_only() -> None:
    assert isinstance(fitted(Matrix((8,), 24), nvfp4(experts=False, own_input=None), 32), Split)
    assert not isinstance(fitted(Matrix((8,), 24, width=24), nvfp4(experts=True, own_input=None), 32), Split)


def test_a_rule_that_always_holds_names_the_block() -> None:
    scheme = grouped_integers(4, 128, zero_points=False, musts=(Must("ins", 128),))
    split = first_split(Matrix((8,), 14784, ins_over=2), scheme)
    assert str(split) == "14784 inputs of a rank are not whole blocks of 128, as 4-bit in groups of 128 has them"
