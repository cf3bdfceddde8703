"""Where a value stands, and what it is when it cannot be known.

Every value that reaches a rule is a `Located`: its number, the place where somebody wrote it, and how it came
to be.  What the files cannot tell is an `Unknown`, which travels the same road instead of a guess.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Literal, TypeVar

from shardlint.findings.records import NamedTuple

T = TypeVar("T")
U = TypeVar("U")

Origin = Literal["written", "default", "derived", "given"]
"""written: in the file; default: the engine's own; derived: computed from others; given: by the user's options."""


class Span(NamedTuple):
    """A stretch of one file. Lines and columns count from 1, columns in characters, the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


class Located(Generic[T]):
    """A value that knows where it was written.

    `spelled` is the text as its author wrote it (`-tp 8`), so that advice can be given in the same spelling.
    `source` says in words where a value comes from that stands in no file ("default of vLLM 0.33.0").

    The one record that is no named tuple: of a generic one the type checker forgets the type of its value.
    """

    __slots__ = ("origin", "source", "span", "spelled", "value")

    def __init__(
        self, value: T, span: Span | None = None, spelled: str = "", origin: Origin = "written", source: str = ""
    ) -> None:
        self.value: Final = value
        self.span: Final = span
        self.spelled: Final = spelled
        self.origin: Final[Origin] = origin
        self.source: Final = source

    def with_value(self, value: U) -> Located[U]:
        """The same place, another reading of it (text "8" -> number 8)."""
        return Located(value, self.span, self.spelled, self.origin, self.source)

    def respelled(self, spelled: str) -> Located[T]:
        """The same value, with another text for it."""
        return Located(self.value, self.span, spelled, self.origin, self.source)

    def _all(self) -> tuple[T, Span | None, str, Origin, str]:
        return self.value, self.span, self.spelled, self.origin, self.source

    def __eq__(self, other: object) -> bool:
        return self._all() == other._all() if isinstance(other, Located) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"Located({self.value!r}, {self.span}, {self.spelled!r}, {self.origin!r}, {self.source!r})"


class Unknown(NamedTuple):
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
