"""Release numbers of engines: enough of PEP 440 to read and order them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_PATTERN = re.compile(
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){1,5})"
    r"(?:[-_.]?(?P<phase>a|b|rc)[-_.]?(?P<number>\d{1,9}))?"
    r"(?:[-_.]?post[-_.]?(?P<post>\d{1,9}))?"
    r"(?:\.dev(?P<dev>\d{1,9}))?"
    r"(?:\+[a-z0-9.]{1,64})?",
    re.IGNORECASE,
)
_PHASES = {"a": -3, "b": -2, "rc": -1}
_FINAL = 0
_BEFORE_ALL = -4


class Version:
    """A release such as 0.8.5.post1. Trailing zeros do not count, `text` is as written without its v.

    In order: development builds, a, b, rc, the release, post.
    A class by hand: a frozen, ordered dataclass takes a millisecond more to make, and `total_ordering` compares in
    twice the time.
    """

    __slots__ = ("key", "text")

    def __init__(
        self,
        release: Sequence[int],
        phase: int = _FINAL,
        number: int = 0,
        post: int = -1,
        dev: int | None = None,
        text: str = "",
    ) -> None:
        self.text = text or ".".join(map(str, release))
        if dev is not None and phase == _FINAL and post < 0:
            phase = _BEFORE_ALL
        self.key = (_significant(release), phase, number, post, dev is None, dev or 0)

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read `0.8.5.post1`, `v0.33.0`, `0.11.0rc2`; None where the text is no such number."""
        return _parsed(text.strip())

    @classmethod
    def of(cls, text: str) -> Version:
        """The same for a text that is known to be one. Raises ValueError where it is not."""
        version = cls.parse(text)
        if version is None:
            raise ValueError(f"{text!r} is no release number")
        return version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.key == other.key

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key

    def __le__(self, other: Version) -> bool:
        return self.key <= other.key

    def __gt__(self, other: Version) -> bool:
        return self.key > other.key

    def __ge__(self, other: Version) -> bool:
        return self.key >= other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def _significant(release: Sequence[int]) -> tuple[int, ...]:
    """The numbers of a release without zeros at the end."""
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    return tuple(release[:end])


@lru_cache(maxsize=256)
def _parsed(text: str) -> Version | None:
    """Kept: manifests, tables and settings name the same few releases again and again."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    return Version(
        [int(part) for part in match["release"].split(".")],
        _PHASES[match["phase"].lower()] if match["phase"] else _FINAL,
        int(match["number"] or 0),
        -1 if match["post"] is None else int(match["post"]),
        None if match["dev"] is None else int(match["dev"]),
        text.removeprefix("v").removeprefix("V"),
    )
