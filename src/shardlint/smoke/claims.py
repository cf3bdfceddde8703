"""What can be claimed of a layout, and what a plan gives rise to."""

from __future__ import annotations

from shardlint.layout import place_of
from shardlint.smoke.cuts import own_tokens, token_source
from shardlint.smoke.plan import Plan

CLAIMS = {
    "membership": "every group holds the planned ranks",
    "memory": "the planned weights and KV cache of each rank fit on its device",
    "split-mlp": "a column-parallel, then row-parallel MLP with one all-reduce equals the unsplit product",
    "attention": "query heads with the KV heads of their ranks, and one all-reduce, equal all heads on one device",
    "decode-context": "the stripes of a KV cache, merged by log-sum-exp, equal the whole sequence",
    "prefill-context": "chunks of a prompt with the keys and values of all ranks equal the whole prompt",
    "embedding": "each token is looked up by the one rank that has its row",
    "output-head": "the gathered logits without their padding equal those of the whole vocabulary",
    "experts": "tokens reach the experts of all ranks and come back summed",
    "experts-all-to-all": "tokens sent to the ranks of their experts alone come back right",
    "repetition": "the same sum has the same bits every time",
    "graph-replay": "an all-reduce captured in a CUDA graph sums the new input of each replay",
    "stage-hand-off": "hidden_states and residual reach each stage in slices as the layers before it give them",
    "all-layers": "the last stage ends as the unsplit model does",
    "replicas": "replicas give equal results",
    "ranks": "every rank comes to its end",
}
"""What can be claimed, in the order in which it is tried: in whole numbers with tolerance 0, then (but for those of
the groups and stages) in the model's dtype with the plan's."""

SLICED_EXPERTS = "every rank has a slice of every expert, and the sum over the slices equals the unsplit experts"
"""What stands for `experts` without expert parallelism, in the group that vLLM calls `ep` there too."""

WITH_TOKENS = ("experts", "experts-all-to-all")
"""Claims for which ranks have tokens of their own."""

JUDGED_FROM_OUTSIDE = ("replicas", "ranks")
"""Claims that no rank can judge for itself."""


def in_words(name: str, plan: Plan) -> str:
    """What a claim says of this plan."""
    words = CLAIMS[name]
    if name == "experts" and not plan.sizes.enable_expert_parallel:
        words = SLICED_EXPERTS
    if name in WITH_TOKENS and any(not own_tokens(token_source(plan, rank)) for rank in plan.ranks):
        words += ", some ranks having no tokens"
    return words


def expected(plan: Plan) -> dict[str, set[tuple[str, int]]]:
    """The claims that a plan gives rise to: which ranks judge each, over which kind of group."""
    stage_of = {rank: place_of(rank, plan.sizes).pipeline for rank in plan.ranks}
    last = len(plan.stages) - 1

    def all_of(kind: str, there: object = True) -> set[tuple[str, int]]:
        return {(kind, rank) for rank in plan.ranks if kind in ("world", *plan.groups) and there}

    judges = {
        "membership": {(kind, rank) for kind in ("world", *plan.groups) for rank in plan.ranks},
        "memory": all_of("world", plan.allocation),
        "split-mlp": all_of("tp"),
        "attention": all_of("tp", plan.heads),
        "decode-context": all_of("dcp", plan.heads),
        "prefill-context": all_of("pcp", plan.heads),
        "embedding": {judge for judge in all_of("tp", plan.vocabulary) if stage_of[judge[1]] == 0},
        "output-head": {judge for judge in all_of("tp", plan.vocabulary) if stage_of[judge[1]] == last},
        "experts": all_of("ep", plan.experts),
        "experts-all-to-all": all_of("ep", plan.experts and plan.sizes.enable_expert_parallel),
        "repetition": {judge for kind in plan.groups if kind != "pp" for judge in all_of(kind)},
        "graph-replay": all_of("tp" if len(plan.ranks) > 1 else "world", plan.graphs),
        "stage-hand-off": {("pp", rank) for rank in plan.ranks if stage_of[rank] > 0},
        "all-layers": {("world", rank) for rank in plan.ranks if stage_of[rank] == last},
        "replicas": {("twins", group[0]) for group in plan.twins},
        "ranks": {("world", rank) for rank in plan.ranks},
    }
    return {name: judged for name, judged in judges.items() if judged}
