"""Ranks, groups and shares: which rank holds what, on which node, and what it costs. Arithmetic only."""

from shardlint.layout.laying_out import MOST_RANKS, lay_out
from shardlint.layout.layout import CacheShare, Layout, Rank, StateShare
from shardlint.layout.legal import Legal, legal_values
from shardlint.layout.lower_bound import LowerBound, weights_at_least
from shardlint.layout.packing import Split
from shardlint.layout.ranks import Group, GroupKind, crossing, group_of, groups, place_of, rank_of, ranks_per_node
from shardlint.layout.share import Division, Uneven
from shardlint.layout.sizes import DEGREES, Degree, Sizes
from shardlint.layout.stages import Layers, PartitionFault, even_counts, stage_layers

__all__ = [
    "DEGREES",
    "MOST_RANKS",
    "CacheShare",
    "Degree",
    "Division",
    "Group",
    "GroupKind",
    "Layers",
    "Layout",
    "Legal",
    "LowerBound",
    "PartitionFault",
    "Rank",
    "Sizes",
    "Split",
    "StateShare",
    "Uneven",
    "crossing",
    "even_counts",
    "group_of",
    "groups",
    "lay_out",
    "legal_values",
    "place_of",
    "rank_of",
    "ranks_per_node",
    "stage_layers",
    "weights_at_least",
]
