"""How people name rules, in options, settings and comments alike."""

from __future__ import annotations


def names(word: str, rule: str, code: str, family: str) -> bool:
    """Whether a word names a rule: its name, its family, its code or the beginning of it (`SL1`)."""
    return word in (rule, family) or code.startswith(word.upper())
