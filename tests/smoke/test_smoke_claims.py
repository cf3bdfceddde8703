"""Every claim on real processes: sound layouts hold, and each claim fails when its fault is planted."""

from __future__ import annotations

from typing import Any

import pytest
from smoke_plans import DENSE, EXPERTS, LATENT, messages, plan

from shardlint.smoke import run
from shardlint.smoke.plan import Deviation

pytestmark = pytest.mark.usefixtures("room")

TWO_KV_HEADS = DENSE | {"num_key_value_heads": 2}
UNEVEN_EXPERTS = EXPERTS | {"num_local_experts": 10, "num_hidden_layers": 2}
TENSOR = ("split-mlp", "attention", "embedding", "output-head", "repetition")

SOUND: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "uneven stages": (DENSE, {"pp": 2, "pp_layer_partition": "4,2"}, ("stage-hand-off", "all-layers")),
    "replicas of a dense model": (DENSE, {"dp": 2}, ("all-layers", "replicas")),
    "three dimensions": (
        DENSE | {"torch_dtype": "float16", "vocab_size": 32001},
        {"dp": 2, "pp": 2, "tp": 2},
        (*TENSOR, "stage-hand-off", "all-layers", "replicas"),
    ),
    "replicated KV heads, striped cache": (
        TWO_KV_HEADS,
        {"tp": 4, "dcp": 2},
        (*TENSOR, "decode-context", "all-layers"),
    ),
    "uneven experts": (
        UNEVEN_EXPERTS,
        {"dp": 4, "ep": True},
        ("experts", "experts-all-to-all", "repetition", "all-layers", "replicas"),
    ),
    "experts cut in width": (EXPERTS, {"dp": 2}, ("experts", "repetition", "all-layers", "replicas")),
    "prefill and decode contexts of one latent head": (
        LATENT,
        {"pcp": 2, "tp": 2, "dcp": 4, "ep": True},
        (*TENSOR, "decode-context", "prefill-context", "experts", "experts-all-to-all", "all-layers"),
    ),
    "sixteen ranks": (
        UNEVEN_EXPERTS,
        {"dp": 2, "pp": 2, "tp": 4, "ep": True},
        (*TENSOR, "experts", "experts-all-to-all", "stage-hand-off", "all-layers", "replicas"),
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_layout_holds(name: str) -> None:
    config, sizes, claims = SOUND[name]
    result = run(plan(config, **sizes))
    assert (result.exit_code, result.failed, result.not_reached) == (0, (), ())
    met = {(claim.kind, claim.group) for claim in result.claims if claim.name == "membership"}
    assert met >= {(kind, group) for kind, table in result.plan.groups.items() for group in table}
    assert set(result.proven) == {"membership", *claims, "ranks"}


def test_wrong_kv_heads_stripes_and_weights_of_a_cache_are_named() -> None:
    faults = (
        Deviation("kv-heads", (1,), (1, 2)),
        Deviation("stripe", (1,), 0),
        Deviation("log-sum-exp", (2,), False),
    )
    result = run(plan(TWO_KV_HEADS, *faults, tp=4, dcp=2))
    assert (result.exit_code, result.failed) == (1, ("attention", "decode-context"))
    (attention,) = set(messages(result, "attention").values())
    assert attention.startswith(
        "in whole numbers: query head 8 on rank 1 read KV head 1, and KV head 0 is planned; query head 9 on rank 1 "
    )
    assert attention.endswith("; and 5 more")
    striped = messages(result, "decode-context")
    assert striped[0].endswith(": rank 1 added the tokens of rank 0")
    assert striped[2].startswith("in float32: 7 tokens: off by ")
    assert striped[2].endswith(": ranks [2] gave another log-sum-exp than that of their tokens")


def test_wrong_rows_and_kept_padding_of_the_vocabulary_are_named() -> None:
    faults = (Deviation("vocabulary", (1,), (287, 575)), Deviation("padding", (2, 3), False))
    result = run(plan(DENSE | {"vocab_size": 32001}, *faults, tp=2, dp=2))
    assert (result.exit_code, result.failed) == (1, ("embedding", "output-head"))
    (looked_up,) = set(messages(result, "embedding").values())
    assert looked_up == "in whole numbers: token 287 of 513 belongs to rank 0, and ranks [0, 1] looked it up"
    heads = messages(result, "output-head")
    assert heads[2] == heads[3] == "in whole numbers: row 513 wins, which is padding: the vocabulary has 513 tokens"
    assert heads[0].endswith(": rank 1 added no rows of the model")


def test_experts_that_are_one_off_are_named_both_ways() -> None:
    result = run(plan(UNEVEN_EXPERTS, Deviation("experts", (2,), (5, 7)), dp=4, ep=True))
    assert (result.exit_code, result.failed) == (1, ("experts", "experts-all-to-all"))
    gathered = messages(result, "experts")
    assert sorted(gathered) == [0, 2, 3]  # rank 1 has no tokens of its own
    assert all(
        message.endswith(": rank 2 added what experts 5-6 make, and experts 6-7 are planned")
        for message in gathered.values()
    )
    sent = messages(result, "experts-all-to-all")
    assert sent[0].endswith("what ranks [2] sent back is not what experts [7] make")
    assert sent[2].endswith("rank 2 holds experts 5-6 and got tokens for expert 7, which rank 2 has by the plan")


def test_wrong_tokens_of_a_prompt_and_sums_that_flicker_are_named() -> None:
    faults = (Deviation("chunks", (1,), (0, 1, 6, 6)), Deviation("flips", (2,), (3, 7)))
    result = run(plan(DENSE, *faults, pcp=2, dp=2))
    assert (result.exit_code, result.failed) == (1, ("prefill-context", "repetition"))
    (chunks,) = set(messages(result, "prefill-context").values())
    assert chunks == ("in whole numbers: the keys of tokens [2, 3, 4, 5] of 7 are not theirs: they come from ranks [1]")
    (flicker,) = set(messages(result, "repetition").values())
    assert flicker == "in bfloat16: 2 of 10 sums have other bits than the first: repetitions [3, 7]"


def test_swapped_and_lost_slices_are_seen_in_all_of_their_group() -> None:
    swapped, lost = (Deviation("slice", (0,), 1), Deviation("slice", (1,), 0)), Deviation("residual", (5,), False)
    result = run(plan(DENSE, *swapped, lost, tp=2, pp=2, dp=2))
    assert (result.exit_code, result.failed) == (1, ("stage-hand-off", "all-layers", "replicas"))
    found = messages(result, "stage-hand-off")
    assert (
        found[2]
        == found[3]
        == (
            "rank 2 received slice 1 of 2, and slice 0 is its own; rank 3 received slice 0 of 2, and slice 1 is its own"
        )
    )
    assert found[6].startswith("not what the first 3 layers give; residual: ")
    assert found[7] == found[6]


def test_memory_is_taken_where_the_host_has_it_and_a_lack_or_other_weights_are_told() -> None:
    faults = (Deviation("allocation", (1,), (2**20, 2**62)), Deviation("seed", (1,), 7))
    result = run(plan(DENSE, *faults, dp=2)._replace(allocation=((2**20, 2**20),) * 2))
    assert (result.exit_code, result.failed) == (1, ("memory", "replicas"))
    (message,) = messages(result, "memory").values()
    assert message.startswith("no room for 4294967296.0 GiB of KV cache on cpu: ")
    assert messages(result, "replicas") == {0: "ranks [1] end with other tensors than rank 0"}
