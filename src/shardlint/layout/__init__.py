"""Ranks, groups and shares: which rank holds what, on which node, and what it costs. Arithmetic only."""

from shardlint.layout.layout import Layout, Rank

__all__ = ["Layout", "Rank"]
