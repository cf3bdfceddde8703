"""The vocabulary that every room speaks: places, findings, rules, reports. Imports nothing of ours.

Records, here and in every room that a lint passes through, are `NamedTuple`s of `records`, and what changes while it is
filled is a class by hand: a frozen dataclass with slots takes 0.5 ms to make where such a tuple takes 0.01, there are
a hundred of them, and `dataclasses` itself loads `inspect`.  As tuples they could be iterated over and told apart by
`isinstance(x, tuple)`; nobody does either.
"""

from shardlint.findings.finding import Change, FileNote, Finding, NotChecked, Problem, Related, Report, Rule, Undecided
from shardlint.findings.places import Located, Maybe, Origin, Span, Unknown, known
from shardlint.findings.remarks import Duplicate, Ignore
from shardlint.findings.vocabulary import (
    FAMILIES,
    GROUPS,
    SEVERITIES,
    Certainty,
    Effect,
    Piece,
    Severity,
)

__all__ = [
    "FAMILIES",
    "GROUPS",
    "SEVERITIES",
    "Certainty",
    "Change",
    "Duplicate",
    "Effect",
    "FileNote",
    "Finding",
    "Ignore",
    "Located",
    "Maybe",
    "NotChecked",
    "Origin",
    "Piece",
    "Problem",
    "Related",
    "Report",
    "Rule",
    "Severity",
    "Span",
    "Undecided",
    "Unknown",
    "known",
]
