"""Patterns that are compiled when they are first used: most runs need few, and compiling all takes a tenth of a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Pattern:
    """A regular expression; each method is that of `re.Pattern`."""

    __slots__ = ("_compiled", "_flags", "_text")

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return self._compiled

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        return self.compiled.search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        return self.compiled.match(text, start, end)

    def fullmatch(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        return self.compiled.fullmatch(text, start, end)

    def finditer(self, text: str, start: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[str]]:
        return self.compiled.finditer(text, start, end)

    def findall(self, text: str) -> list[str]:
        return self.compiled.findall(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        return self.compiled.sub(by, text, count)

    def split(self, text: str) -> list[str]:
        return self.compiled.split(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)


@contextmanager
def compiled_when_used() -> Iterator[None]:
    """Patterns of modules that are imported meanwhile are compiled when they are first used, as ours are."""
    compile_now = re.compile
    re.compile = Pattern  # type: ignore[assignment]
    try:
        yield
    finally:
        re.compile = compile_now
