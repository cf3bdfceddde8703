"""Ranks in the engine's order, their groups, and the node that each sits on."""

from __future__ import annotations

from typing import Literal, NamedTuple

from shardlint.layout.sizes import Sizes

GroupKind = Literal["tp", "pp", "dp", "pcp", "ep"]
"""Ranks that talk to each other: tensor, pipeline, data, prefill context and expert parallel groups."""

Group = tuple[int, ...]


class Place(NamedTuple):
    """Where a rank stands in every dimension of the layout."""

    data: int
    pipeline: int
    context: int
    tensor: int


def place_of(rank: int, sizes: Sizes) -> Place:
    """The place of a rank: DP x PP x PCP x TP, the last one fastest."""
    rest, tensor = divmod(rank, sizes.tensor_parallel_size)
    rest, context = divmod(rest, sizes.prefill_context_parallel_size)
    data, pipeline = divmod(rest, sizes.pipeline_parallel_size)
    return Place(data, pipeline, context, tensor)


def rank_of(place: Place, sizes: Sizes) -> int:
    """The rank that stands at a place."""
    stage = place.data * sizes.pipeline_parallel_size + place.pipeline
    return (stage * sizes.prefill_context_parallel_size + place.context) * sizes.tensor_parallel_size + place.tensor


def expert_rank(place: Place, sizes: Sizes) -> int:
    """The index of a rank among those that share the experts of its stage: dp · (PCP · TP) + pcp · TP + tp."""
    return (
        place.data * sizes.prefill_context_parallel_size + place.context
    ) * sizes.tensor_parallel_size + place.tensor


def groups(kind: GroupKind, sizes: Sizes) -> tuple[Group, ...]:
    """All groups of one kind, each with its ranks in order; together they hold every rank once."""
    members: dict[Place, list[int]] = {}
    for rank in range(sizes.world_size):
        members.setdefault(_group_of(kind, place_of(rank, sizes)), []).append(rank)
    return tuple(tuple(ranks) for ranks in members.values())


def group_of(kind: GroupKind, rank: int, sizes: Sizes) -> Group:
    """The group of one kind that a rank belongs to."""
    own = _group_of(kind, place_of(rank, sizes))
    return tuple(other for other in range(sizes.world_size) if _group_of(kind, place_of(other, sizes)) == own)


def _group_of(kind: GroupKind, place: Place) -> Place:
    """The place with the dimensions set to 0 that a group of this kind runs through."""
    match kind:
        case "tp":
            return place._replace(tensor=0)
        case "pp":
            return place._replace(pipeline=0)
        case "dp":
            return place._replace(data=0)
        case "pcp":
            return place._replace(context=0)
        case "ep":
            return Place(0, place.pipeline, 0, 0)


def ranks_per_node(sizes: Sizes, gpus_per_node: int | None) -> int | None:
    """How many consecutive ranks sit on one node; None where neither the nodes nor their GPUs are known.

    Nodes that are counted by `nnodes` share the ranks evenly, even where they have GPUs to spare; otherwise a node
    is filled before the next one begins.
    """
    if sizes.nnodes > 1 and sizes.world_size % sizes.nnodes == 0:
        return sizes.world_size // sizes.nnodes
    return gpus_per_node if gpus_per_node and gpus_per_node > 0 else None


def crossing(kind: GroupKind, sizes: Sizes, per_node: int) -> tuple[Group, ...]:
    """The groups of one kind whose ranks sit on more than one node."""
    return tuple(group for group in groups(kind, sizes) if len({rank // per_node for rank in group}) > 1)
