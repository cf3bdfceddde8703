"""Colours, for terminals only."""

from __future__ import annotations

STYLES = {"error": "1;31", "warning": "1;33", "note": "1;36", "strong": "1", "frame": "34", "good": "32"}


def paint(text: str, style: str, colour: bool) -> str:
    """The text in a style, or as it is."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colour and text else text
