"""Go and Jinja templates, masked to the same length before YAML is parsed, so that every place stays true."""

from __future__ import annotations

from dataclasses import dataclass, field

from shardlint.text.source import MASK


@dataclass(frozen=True, slots=True)
class Masked:
    """A text of the same length with its templates masked, and where they stood."""

    text: str
    pieces: list[tuple[int, int]] = field(default_factory=list)


def mask(text: str) -> Masked:
    """Replaces `{{ ... }}` and `{% ... %}`."""
    pieces: list[tuple[int, int]] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = text.find("}}", start)
        at = len(text) if end < 0 else end + 2
        pieces.append((start, at))
    for start, end in pieces:
        text = text[:start] + MASK * (end - start) + text[end:]
    return Masked(text, pieces)
