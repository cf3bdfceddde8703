"""Where a value stands, and what it is when it cannot be known.

Every value that reaches a rule is a `Located`: its number, the place where somebody wrote it, and how it came
to be.  What the files cannot tell is an `Unknown`, which travels the same road instead of a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")
U = TypeVar("U")

Origin = Literal["written", "default", "derived", "given"]
"""written: in the file; default: the engine's own; derived: computed from others; given: by the user's options."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one file. Lines and columns count from 1, columns in characters, the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Located(Generic[T]):
    """A value that knows where it was written.

    `spelled` is the text as its author wrote it (`-tp 8`), so that advice can be given in the same spelling.
    `source` says in words where a value comes from that stands in no file ("default of vLLM 0.33.0").
    """

    value: T
    span: Span | None = None
    spelled: str = ""
    origin: Origin = "written"
    source: str = ""

    def with_value(self, value: U) -> Located[U]:
        """The same place, another reading of it (text "8" -> number 8)."""
        return replace(self, value=value)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True, slots=True)
class Unknown:
    """What the files do not tell: why, where that was seen, and what would settle it."""

    reason: str
    span: Span | None = None
    spelled: str = ""
    settle_by: str = ""


Maybe = Located[T] | Unknown
"""A value, or why there is none. `None` beside it means: not written."""


def known(value: Located[Any] | Unknown | None) -> bool:
    """True where there is a value to do sums with."""
    return isinstance(value, Located)
