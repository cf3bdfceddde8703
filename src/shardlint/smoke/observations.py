"""What is seen of the hosts beside the claims: of their surroundings before a run, of their links during one."""

from __future__ import annotations

from typing import Literal, NamedTuple

Weight = Literal["error", "warning", "note"]


class Observation(NamedTuple):
    """One thing seen on one host, or between hosts. Errors fail a run; warnings and notes are told."""

    name: str
    """Stable, for programs: `hostname`, `shared-memory`, `crosses-nodes`, ..."""
    severity: Weight
    host: str
    """Empty where it concerns several."""
    message: str
    advice: str = ""
