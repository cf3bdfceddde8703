"""Text put together from pieces, each character of which keeps its place in the file."""

from __future__ import annotations

from shardlint.deployment import Word
from shardlint.findings import Located, Unknown
from shardlint.text.source import MASK, Fragment

MOST_CHARACTERS = 2**15
"""Characters of one text with its variables replaced. Variables of variables grow by powers; real words are short."""


class Splice:
    """A fragment in the making, out of pieces of another one."""

    def __init__(self, base: Fragment) -> None:
        self.base = base
        self._text: list[str] = []
        self._offsets: list[int] = []
        self._holes: dict[int, Unknown] = {}

    def copy(self, fragment: Fragment, at: int) -> None:
        """Takes over one character, and the hole that begins there."""
        if at in fragment.holes:
            self._holes[len(self._text)] = fragment.holes[at]
        self._put(fragment.text[at], fragment.offsets[at])

    def extend(self, fragment: Fragment) -> None:
        for at in range(len(fragment.text)):
            self.copy(fragment, at)

    def replace(self, fragment: Fragment, start: int, end: int, value: str) -> None:
        """Puts a value for `text[start:end]`; all of it stands where the reference to it does.

        Where that grows too long, it is left unknown.
        """
        if len(self._text) + len(value) > MOST_CHARACTERS:
            too_long = f"it is longer than {MOST_CHARACTERS} characters"
            self.hole(fragment, start, end, Unknown(too_long, fragment.span(start, end), fragment.text[start:end]))
            return
        first, last = fragment.offsets[start], fragment.offsets[end - 1]
        stretches = len(value) > 1 or bool(self._text)
        for index, character in enumerate(value):
            at_end = stretches and index == len(value) - 1
            self._put(character, last if at_end else min(first + index, last))

    def hole(self, fragment: Fragment, start: int, end: int, why: Unknown) -> None:
        """Leaves `text[start:end]` unknown."""
        self._holes[len(self._text)] = why
        for at in range(start, end):
            self._put(MASK, fragment.offsets[at])

    def fragment(self) -> Fragment:
        end = self._offsets[-1] + 1 if self._offsets else self.base.offsets[0]
        return Fragment("".join(self._text), self.base.source, [*self._offsets, end], self._holes)

    def _put(self, character: str, offset: int) -> None:
        self._text.append(character)
        self._offsets.append(offset)


def word_of(fragment: Fragment) -> Word:
    """The fragment as one word: Unknown where a part of it is."""
    span = fragment.span(0, len(fragment.text))
    if MASK not in fragment.text:
        return Located(fragment.text, span, _spelled(fragment))
    holes = fragment.holes
    why = holes[min(holes)] if holes else Unknown("templated", settle_by="render the template first")
    return Unknown(why.reason, span, fragment.restored(), why.settle_by)


def _spelled(fragment: Fragment) -> str:
    if not fragment.text:
        return ""
    return fragment.source.text[fragment.offsets[0] : fragment.offsets[len(fragment.text) - 1] + 1]
