"""What is to be tried: pure arithmetic, no process."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from smoke_plans import DENSE, EXPERTS, plan, planned

from shardlint.findings import Unknown
from shardlint.smoke import Plan
from shardlint.smoke.plan import Deviation, scaled

degrees = st.sampled_from([1, 2, 4])


def test_replicas_of_a_dense_model_are_worlds_of_their_own() -> None:
    found = plan(DENSE, tp=2, pp=2, dp=2)
    assert found.worlds == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert list(found.groups) == ["tp", "pp"]
    assert found.twins == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_replicas_of_a_model_with_experts_share_a_world_and_the_groups_of_vllm() -> None:
    found = plan(EXPERTS, tp=2, pp=2, dp=2)
    assert found.worlds == (tuple(range(8)),)
    assert found.groups == {
        "tp": ((0, 1), (2, 3), (4, 5), (6, 7)),
        "pp": ((0, 2), (1, 3), (4, 6), (5, 7)),
        "dp": ((0, 4), (1, 5), (2, 6), (3, 7)),
        "ep": ((0, 1, 4, 5), (2, 3, 6, 7)),
    }


def test_groups_of_one_rank_are_not_made() -> None:
    assert plan(DENSE).groups == {}


def test_stages_are_those_of_the_planned_partition() -> None:
    found = plan(DENSE, pp=3, pp_layer_partition="1,3,2")
    assert found.stages == ((0, 1), (1, 4), (4, 6))
    assert found.layers == 6


def test_what_is_not_tried_is_said() -> None:
    assert plan(EXPERTS, tp=2, pcp=2).untried == (
        "attention",
        "expert dispatch",
        "prefill context parallelism beyond its groups",
    )


def test_a_layout_that_the_engine_refuses_is_not_tried() -> None:
    found = planned(DENSE, tp=3)
    assert isinstance(found, Unknown)
    assert found.reason == "the engine refuses this layout: 32 query heads do not divide by 3"


def test_a_partition_at_fault_is_not_tried() -> None:
    found = planned(DENSE, pp=2, pp_layer_partition="3,4")
    assert isinstance(found, Unknown)
    assert "the parts add up to 7 and the model has 6 layers" in found.reason


def test_a_model_without_a_known_width_is_not_tried() -> None:
    config = {key: value for key, value in DENSE.items() if key != "intermediate_size"}
    found = planned(config | {"architectures": ["OddForCausalLM"], "model_type": "odd"}, tp=2)
    assert isinstance(found, Unknown)
    assert "intermediate_size" in found.reason


@given(dp=degrees, pp=degrees, pcp=degrees, tp=degrees, experts=st.booleans())
def test_a_plan_survives_its_way_through_json(dp: int, pp: int, pcp: int, tp: int, experts: bool) -> None:
    deviation = Deviation("shards", (0,), [0, 0])
    found = plan(EXPERTS if experts else DENSE, deviation, dp=dp, pp=pp, pcp=pcp, tp=tp)
    assert Plan.from_json(json.loads(json.dumps(found.to_json()))) == found


@given(dp=degrees, pp=degrees, pcp=degrees, tp=degrees, experts=st.booleans())
def test_every_rank_is_once_in_a_world_and_in_each_kind_of_group(
    dp: int, pp: int, pcp: int, tp: int, experts: bool
) -> None:
    found = plan(EXPERTS if experts else DENSE, dp=dp, pp=pp, pcp=pcp, tp=tp)
    for table in (found.worlds, *found.groups.values()):
        assert sorted(rank for group in table for rank in group) == list(found.ranks)
    for rank in found.ranks:
        for kind in found.groups:
            assert set(found.group_of(kind, rank)) <= set(found.world_of(rank))


@given(size=st.integers(1, 10**6), ways=st.integers(1, 64), most=st.integers(1, 512))
def test_a_scaled_size_is_cut_like_the_real_one(size: int, ways: int, most: int) -> None:
    tried = scaled(size, ways, most)
    assert tried % ways == size % ways
    assert 0 < tried <= size
    assert tried < max(most, ways) + ways
