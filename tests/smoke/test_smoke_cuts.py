"""Which pieces and tokens a plan gives each rank: pure arithmetic, no process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smoke_plans import DENSE, EXPERTS, plan

from shardlint.smoke import cuts
from shardlint.smoke.claims import in_words
from shardlint.smoke.plan import Plan


def _kv_heads(found: Plan) -> list[list[int]]:
    assert found.heads is not None
    return [list(cuts.kv_heads(found, found.heads, rank)) for rank in found.ranks]


@pytest.mark.parametrize(
    ("kv_heads", "held"),
    [
        (8, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, [[0], [1], [2], [3]]),
        (2, [[0], [0], [1], [1]]),
        (1, [[0], [0], [0], [0]]),
    ],
)
def test_kv_heads_are_split_or_held_by_neighbours(kv_heads: int, held: list[list[int]]) -> None:
    assert _kv_heads(plan(DENSE | {"num_key_value_heads": kv_heads}, tp=4)) == held


@given(ways=st.sampled_from([1, 2, 4, 8, 16]), kv=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_each_query_head_is_beside_the_kv_head_that_it_reads(ways: int, kv: int) -> None:
    found = plan(DENSE | {"num_key_value_heads": kv}, tp=ways)
    assert found.heads is not None
    for rank in found.ranks:
        read = {head // (found.heads.query // kv) for head in cuts.query_heads(found, found.heads, rank)}
        assert read == set(cuts.kv_heads(found, found.heads, rank))


@given(length=st.integers(1, 200), ways=st.integers(1, 16), run=st.integers(1, 20))
def test_each_token_is_kept_and_computed_once(length: int, ways: int, run: int) -> None:
    kept = [token for index in range(ways) for token in cuts.stripe(length, index, ways, run)]
    computed = [token for index in range(ways) for token in cuts.prefill_tokens(length, index, ways)]
    assert sorted(kept) == sorted(computed) == list(range(length))


def test_decode_ranks_keep_runs_of_tokens_in_turn() -> None:
    assert [cuts.stripe(9, index, 2, 2) for index in range(2)] == [[0, 1, 4, 5, 8], [2, 3, 6, 7]]


def test_a_prefill_rank_has_a_chunk_of_the_start_and_its_mirror_image() -> None:
    assert [cuts.prefill_tokens(7, index, 2) for index in range(2)] == [[0, 1, 6], [2, 3, 4, 5]]


def test_padding_of_the_vocabulary_is_cut_like_that_of_the_model() -> None:
    found = plan(DENSE | {"vocab_size": 32001}, tp=4)
    assert found.vocabulary is not None
    assert (found.vocabulary.tried, cuts.padded(found.vocabulary)) == (513, 576)
    rows = [cuts.vocabulary_rows(found, found.vocabulary, rank) for rank in found.ranks]
    assert rows == [(0, 144), (144, 288), (288, 432), (432, 576)]


def test_experts_that_do_not_divide_are_one_more_on_the_first_ranks() -> None:
    found = plan(EXPERTS | {"num_local_experts": 10}, dp=4, ep=True)
    assert found.experts is not None
    held = [list(cuts.held_experts(found, found.experts, rank)) for rank in found.ranks]
    assert held == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


def test_without_expert_parallelism_every_expert_is_cut_over_all_ranks() -> None:
    found = plan(EXPERTS, dp=2, tp=2)
    assert found.experts is not None
    assert all(len(cuts.held_experts(found, found.experts, rank)) == 8 for rank in found.ranks)
    assert [cuts.expert_shard(found, rank) for rank in found.ranks] == [(0, 4), (1, 4), (2, 4), (3, 4)]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"tp": 4}, "every rank has a slice of every expert, and the sum over the slices equals the unsplit experts"),
        (
            {"dp": 4},
            "every rank has a slice of every expert, and the sum over the slices equals the unsplit experts, "
            "some ranks having no tokens",
        ),
        ({"tp": 4, "ep": True}, "tokens reach the experts of all ranks and come back summed"),
        (
            {"dp": 2, "tp": 2, "ep": True},
            "tokens reach the experts of all ranks and come back summed, some ranks having no tokens",
        ),
    ],
)
def test_what_is_claimed_of_experts_is_what_the_plan_does_with_them(sizes: dict[str, int], words: str) -> None:
    assert in_words("experts", plan(EXPERTS, **sizes)) == words


@pytest.mark.parametrize(
    ("sizes", "kinds", "sources"),
    [
        ({"tp": 2, "ep": True}, (), [0, 0]),
        ({"dp": 2, "tp": 2}, ("dp",), [0, 0, 2, 2]),
        ({"dp": 2, "tp": 2, "ep": True}, ("ep",), [0, 1, 2, 3]),
        ({"dp": 2, "tp": 2, "ep": True, "all2all_backend": "moonep"}, ("dp",), [0, 0, 2, 2]),
        ({"dp": 2, "pcp": 2}, ("pcp", "dp"), [0, 1, 2, 3]),
        ({"dp": 2, "pcp": 2, "ep": True}, ("ep",), [0, 1, 2, 3]),
    ],
)
def test_tokens_of_a_moe_layer_are_gathered_by_those_that_have_others(
    sizes: dict[str, int], kinds: tuple[str, ...], sources: list[int]
) -> None:
    found = plan(EXPERTS, **sizes)
    assert cuts.dispatch(found) == kinds
    assert [cuts.token_source(found, rank) for rank in found.ranks] == sources
