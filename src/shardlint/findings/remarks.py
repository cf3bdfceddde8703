"""What a text has beside its meaning, for the linter's own rules."""

from __future__ import annotations

from shardlint.findings.places import Span
from shardlint.findings.records import NamedTuple


class Duplicate(NamedTuple):
    """A key that one mapping has twice: the later one wins in most readers, strict ones refuse."""

    key: str
    first: Span
    again: Span


class Ignore(NamedTuple):
    """Findings that their author has accepted: rule names, codes or families, on one line of the file."""

    names: tuple[str, ...]
    reason: str
    span: Span
    line: int
    """The line that it covers: its own, or the next one with text where the comment stands alone."""
