"""What is to be tried: pure arithmetic, no process."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smoke_plans import DENSE, EXPERTS, LATENT, plan, planned

from shardlint.facts.geometry import read
from shardlint.findings import Unknown
from shardlint.smoke import Plan
from shardlint.smoke.plan import Deviation, Experts, Heads, Scaled
from shardlint.smoke.planning import model_dtype, scaled

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


def test_the_structure_is_the_models_own() -> None:
    found = plan(EXPERTS | {"vocab_size": 32001, "torch_dtype": "float16"}, tp=4)
    assert found.heads == Heads(32, 8)
    assert found.experts == Experts(8, 2, Scaled("moe_intermediate_size", 14336, 32))
    assert found.vocabulary == Scaled("vocab_size", 32001, 513)  # as many rows beyond the padded ones
    assert (found.dtype, found.tolerance) == ("float16", 5e-3)
    assert found.untried == ()
    assert found.scale == (
        "hidden_size 4096 as 128, intermediate_size 14336 as 128, vocab_size 32001 as 513, "
        "moe_intermediate_size 14336 as 32; 32 query heads, 8 KV heads of 8; 8 experts, 2 for a token; all 6 layers; "
        "8 tokens; whole numbers, tolerance 0, then float16, tolerance 0.005"
    )


def test_a_cache_of_latent_vectors_is_one_kv_head() -> None:
    assert plan(LATENT, tp=2).heads == Heads(16, 1)


def test_a_degree_that_takes_no_ranks_of_its_own_is_named_behind_the_others() -> None:
    assert plan(LATENT, tp=4, dp=2, dcp=2, ep=True).degrees == "DP 2 × TP 4, DCP 2, EP 8"
    assert plan(DENSE).degrees == "one rank"


def test_what_is_not_tried_is_said() -> None:
    found = plan(EXPERTS | {"num_key_value_heads": 12}, tp=4, ep=True, enable_eplb=True)
    assert found.untried == ("attention", "copies of experts")


@pytest.mark.parametrize(
    ("option", "checkpoint", "dtype"),
    [
        (None, "float16", "float16"),
        ("auto", "float32", "bfloat16"),  # which the engine builds in 16 bits
        ("half", "bfloat16", "float16"),
        ("float", "bfloat16", "float32"),
    ],
)
def test_the_dtype_is_the_engines(option: str | None, checkpoint: str, dtype: str) -> None:
    assert model_dtype(read(DENSE | {"torch_dtype": checkpoint}, "org/model"), option) == dtype


def test_memory_of_gpus_is_not_taken_from_the_host() -> None:
    small, large = (plan(DENSE, tp=2)._replace(allocation=((size, size),) * 2) for size in (2**20, 2**30))
    assert small.on("gloo") == small
    assert large.on("nccl") == large._replace(graphs=True)
    assert (large.on("gloo").allocation, large.on("gloo").untried) == ((), ("the allocation of 4.0 GiB",))


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
