"""Ranks in the engine's order, their groups, and the node that each sits on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from shardlint.findings.records import NamedTuple
from shardlint.layout.sizes import Sizes

GroupKind = Literal["tp", "pp", "dp", "pcp", "dcp", "ep"]
"""Ranks that talk to each other: tensor, pipeline, data, prefill and decode context and expert parallel groups."""

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
    """All groups of one kind, each with its ranks in the engine's order; together they hold every rank once."""
    members: dict[Place | int, list[int]] = {}
    for rank in _in_order(kind, range(sizes.world_size), sizes):
        members.setdefault(_group_of(kind, rank, sizes), []).append(rank)
    return tuple(tuple(ranks) for ranks in members.values())


def group_of(kind: GroupKind, rank: int, sizes: Sizes) -> Group:
    """The group of one kind that a rank belongs to."""
    own = _group_of(kind, rank, sizes)
    members = (other for other in range(sizes.world_size) if _group_of(kind, other, sizes) == own)
    return tuple(_in_order(kind, members, sizes))


def _in_order(kind: GroupKind, ranks: Iterable[int], sizes: Sizes) -> Iterable[int]:
    return sorted(ranks, key=lambda rank: _context_position(rank, sizes)) if kind == "dcp" else ranks


def _context_position(rank: int, sizes: Sizes) -> int:
    """The number of a rank where PCP counts faster than TP: decode context parallel groups are runs of these."""
    place = place_of(rank, sizes)
    stage = place.data * sizes.pipeline_parallel_size + place.pipeline
    return (stage * sizes.tensor_parallel_size + place.tensor) * sizes.prefill_context_parallel_size + place.context


def _group_of(kind: GroupKind, rank: int, sizes: Sizes) -> Place | int:
    """What the ranks of a group have in common: their place in the dimensions that it does not run through."""
    place = place_of(rank, sizes)
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
        case "dcp":
            return _context_position(rank, sizes) // sizes.decode_context_parallel_size


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
