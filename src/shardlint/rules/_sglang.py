"""Conditions of SGLang's options, in its own words; `sglang/srt/server_args.py` asserts them while it starts."""

from __future__ import annotations

from shardlint.deployment import Told
from shardlint.rules._conditions import Condition


def ranks(told: Told) -> int:
    """Processes of one server: TP x PP, in which data parallel attention and experts lie."""
    return int(told.tensor_parallel_size * told.pipeline_parallel_size)


def copies(told: Told) -> int:
    """Copies of the model behind one address: the data parallel size, where it is not that of the attention."""
    return 1 if told.enable_dp_attention else int(told.data_parallel_size or 1)


def expert_ranks(told: Told) -> int:
    """Ranks that the experts are spread over; some options set them to all."""
    if told.enable_ep_moe or told.enable_deepep_moe or told.moe_a2a_backend == "deepep":
        return int(told.tensor_parallel_size)
    return int(told.expert_parallel_size or 1)


NODES = (
    Condition(
        ("nnodes", "tensor_parallel_size", "pipeline_parallel_size"),
        lambda t: (t.nnodes or 1) > 1 and ranks(t) % t.nnodes != 0,
        lambda t: f"the {ranks(t)} ranks (TP x PP) cannot be shared evenly by {t.nnodes} nodes",
        sum=lambda t: f"{ranks(t)} ranks % {t.nnodes} nodes = {ranks(t) % t.nnodes}",
    ),
    Condition(
        ("node_rank", "nnodes"),
        lambda t: (t.nnodes or 1) > 1 and not 0 <= (t.node_rank or 0) < t.nnodes,
        lambda t: f"node rank {t.node_rank} is not among the ranks 0 to {t.nnodes - 1} of {t.nnodes} nodes",
        sum=lambda t: f"node rank {t.node_rank}, {t.nnodes} nodes",
        help=lambda t: (f"--node-rank {t.nnodes - 1} for the last node",),
        effect="hangs",
    ),
)

REPLICAS = (
    Condition(
        ("data_parallel_size", "enable_dp_attention", "tensor_parallel_size"),
        lambda t: (
            bool(t.enable_dp_attention)
            and (t.data_parallel_size or 1) > 1
            and t.tensor_parallel_size % t.data_parallel_size != 0
        ),
        lambda t: (
            f"data parallel attention cuts the {t.tensor_parallel_size} tensor parallel ranks into "
            f"{t.data_parallel_size} groups, and that does not come out even"
        ),
        sum=lambda t: (
            f"TP {t.tensor_parallel_size} % DP {t.data_parallel_size} = {t.tensor_parallel_size % t.data_parallel_size}"
        ),
        help=lambda t: tuple(
            f"--dp-size {size}" for size in range(t.data_parallel_size, 0, -1) if t.tensor_parallel_size % size == 0
        )[:2],
    ),
    Condition(
        ("data_parallel_size", "nnodes"),
        lambda t: (t.data_parallel_size or 1) > 1 and (t.nnodes or 1) > 1 and not t.enable_dp_attention,
        lambda t: (
            f"{t.data_parallel_size} copies of the model are on one node, or they share their ranks by data parallel "
            f"attention, and there are {t.nnodes} nodes"
        ),
        help=lambda t: ("--enable-dp-attention", "a server of its own on each node, behind a router"),
    ),
    Condition(
        ("enable_dp_lm_head", "enable_dp_attention"),
        lambda t: bool(t.enable_dp_lm_head) and not t.enable_dp_attention and (t.data_parallel_size or 1) > 1,
        lambda t: "--enable-dp-lm-head is for data parallel attention, and it is off",
        help=lambda t: ("--enable-dp-attention",),
    ),
)

EXPERTS = (
    Condition(
        ("expert_parallel_size", "tensor_parallel_size"),
        lambda t: expert_ranks(t) > 1 and t.tensor_parallel_size % expert_ranks(t) != 0,
        lambda t: (
            f"the {expert_ranks(t)} expert parallel ranks lie inside the {t.tensor_parallel_size} of tensor "
            "parallelism, and do not divide them"
        ),
        sum=lambda t: (
            f"TP {t.tensor_parallel_size} % EP {expert_ranks(t)} = {t.tensor_parallel_size % expert_ranks(t)}"
        ),
        help=lambda t: (f"--tp-size {expert_ranks(t)}, with as many GPUs", f"--ep-size {t.tensor_parallel_size}"),
    ),
    Condition(
        ("expert_parallel_size", "tensor_parallel_size"),
        lambda t: (
            expert_ranks(t) > 1
            and (t.num_experts or 0) > 0
            and t.num_experts % expert_ranks(t) != 0
            and not t.ep_num_redundant_experts
        ),
        lambda t: f"{t.num_experts} experts do not divide by the {expert_ranks(t)} expert parallel ranks",
        sum=lambda t: f"{t.num_experts} % EP {expert_ranks(t)} = {t.num_experts % expert_ranks(t)}",
        effect="fails-while-loading",
    ),
)
