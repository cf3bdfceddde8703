"""The vocabulary that every room speaks: places, findings, rules, reports. Imports nothing of ours."""

from shardlint.findings.finding import FileNote, Finding, NotChecked, Problem, Related, Report, Rule
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
    "Unknown",
    "known",
]
