"""Which pieces of the model, and which tokens, a plan gives a rank: vLLM's arithmetic, without any process."""

from __future__ import annotations

from shardlint.layout import place_of
from shardlint.layout.ranks import expert_rank
from shardlint.layout.traffic import VOCABULARY_PADS_TO
from shardlint.smoke.plan import Experts, Heads, Plan, Scaled

TOKENS_OF = (5, 0, 3, 7)
"""Tokens that the ranks of a MoE layer have of their own, in turn: uneven, and none at all on some."""


def query_heads(plan: Plan, heads: Heads, rank: int) -> range:
    """A rank's equal share of the query heads."""
    each = heads.query // plan.sizes.tensor_parallel_size
    return range(place_of(rank, plan.sizes).tensor * each, (place_of(rank, plan.sizes).tensor + 1) * each)


def kv_heads(plan: Plan, heads: Heads, rank: int) -> range:
    """Its share of the KV heads; where they are fewer than the ranks, several neighbours hold the same one."""
    tensor, ways = place_of(rank, plan.sizes).tensor, plan.sizes.tensor_parallel_size
    first = tensor * heads.kv // ways
    return range(first, first + max(1, heads.kv // ways))


def stripe(length: int, index: int, ways: int, run: int) -> list[int]:
    """The tokens of a sequence that one of `ways` decode context parallel ranks keeps: every `ways`-th run of them."""
    return [token for token in range(length) if token // run % ways == index]


def prefill_tokens(length: int, index: int, ways: int) -> list[int]:
    """The tokens of a prompt that one of `ways` prefill context parallel ranks computes.

    Of twice as many chunks it takes one from the start and its mirror image from the end, so that causal attention
    costs all ranks alike.
    """
    size = -(-length // (2 * ways))
    chunks = (index, 2 * ways - 1 - index)
    return [token for chunk in chunks for token in range(chunk * size, min((chunk + 1) * size, length))]


def padded(vocabulary: Scaled) -> int:
    """Rows of the embedding with its padding."""
    return -(-vocabulary.tried // VOCABULARY_PADS_TO) * VOCABULARY_PADS_TO


def vocabulary_rows(plan: Plan, vocabulary: Scaled, rank: int) -> tuple[int, int]:
    """The half-open range of rows of a rank; the padding belongs to the last ones."""
    each = padded(vocabulary) // plan.sizes.tensor_parallel_size
    tensor = place_of(rank, plan.sizes).tensor
    return tensor * each, (tensor + 1) * each


def held_experts(plan: Plan, experts: Experts, rank: int) -> range:
    """The experts of a rank: a run of them, one more on the first ranks where they do not divide; else all."""
    if not plan.sizes.enable_expert_parallel:
        return range(experts.number)
    index, (each, more) = expert_rank(place_of(rank, plan.sizes), plan.sizes), divmod(experts.number, _ways(plan))
    start = index * each + min(index, more)
    return range(start, start + each + (index < more))


def expert_shard(plan: Plan, rank: int) -> tuple[int, int]:
    """Which of how many slices of every expert's width a rank has: all of it where whole experts are spread."""
    if plan.sizes.enable_expert_parallel:
        return 0, 1
    return expert_rank(place_of(rank, plan.sizes), plan.sizes), _ways(plan)


def _ways(plan: Plan) -> int:
    return plan.sizes.expert_group_size


def dispatch(plan: Plan) -> tuple[str, ...]:
    """The kinds of groups that gather the tokens of a MoE layer, one after the other, before its experts see them.

    That of vLLM's default, `allgather_reducescatter`. Where the ranks of a tensor parallel group share the tokens
    out, all ranks of the experts gather at once; a replica alone gathers nothing, since all its ranks have all tokens.
    """
    sizes = plan.sizes
    contexts = sizes.enable_expert_parallel and sizes.data_parallel_size > 1 and sizes.prefill_context_parallel_size > 1
    if sizes.sequence_parallel_experts or contexts:
        return ("ep",)
    return tuple(kind for kind in ("pcp", "dp") if kind in plan.groups)


def token_source(plan: Plan, rank: int) -> int:
    """The number of a rank's own tokens in a MoE layer: ranks with the same number have the same tokens."""
    place = place_of(rank, plan.sizes)
    if not plan.sizes.sequence_parallel_experts:
        place = place._replace(tensor=0)
    return expert_rank(place, plan.sizes)


def own_tokens(source: int) -> int:
    """How many tokens that source has."""
    return TOKENS_OF[source % len(TOKENS_OF)]
