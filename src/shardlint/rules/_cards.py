"""What is certain of the cards that a name may mean."""

from __future__ import annotations

from shardlint.facts import Accelerator
from shardlint.findings import Located


def capability_of(accelerators: Located[tuple[Accelerator, ...]] | None) -> int | None:
    """The highest compute capability of the cards that may be meant, 75 for 7.5; None where one is not known."""
    cards = accelerators.value if accelerators is not None else ()
    parts = [(card.compute_capability or "").split(".") for card in cards]
    if not parts or not all(len(part) == 2 and "".join(part).isdecimal() for part in parts):
        return None
    return max(int(major) * 10 + int(minor) for major, minor in parts)
