"""What the deployments of one run have in common, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

MOST_KEPT = 1024
"""Results: a dozen models at some sizes make a few hundred, and a file of thousands of commands can make any number."""


class Same:
    """A part of a key that is equal to nothing but what is made of the same object, which it keeps."""

    __slots__ = ("_it",)

    def __init__(self, it: object) -> None:
        self._it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._it is other._it

    def __hash__(self) -> int:
        return id(self._it)


class Shared:
    """Results by what they were worked out from: a manifest and its overlays ask the same of the same model."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def once(self, work: Callable[[], T], *key: Hashable) -> T:
        """The result of `work`, which is done only where nothing with that key is kept."""
        if key not in self._known:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[key] = work()
        known: T = self._known[key]
        return known
