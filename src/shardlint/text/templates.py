"""Go and Jinja templates, masked to the same length before YAML is parsed, so that every place stays true.

A control action that fills its line becomes blanks, and so does an output action that does (what it puts there is
not known; the nodes around it say `templated`).  Within a block scalar both become text, because blanks could change
the indentation that the parser detects.  Anything inside a line becomes a run of MASK.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple
from shardlint.text.source import MASK, Stretches

_LONGEST: Final = 8_000
"""Characters of one action that are searched for its end with quotes heeded."""
_GO = Pattern(
    r"\{\{(?:-?\s*/\*.*?\*/\s*-?\}\}|(?:\"(?:\\.|[^\"\\\n])*+\"|`[^`]*+`|'(?:\\.|[^'\\\n])*+'|(?!\}\})[^\"'`])*+\}\})",
    re.DOTALL,
)
_ENDS: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}
_OPENING = Pattern(r"\{\{|\{%|(?<!\$)\{#")
_WORD = Pattern(r"\{[{%][-+~]?\s*(/\*|[A-Za-z]+\b|\$\w*\s*:?=|)")
_CONTROLS: Final = frozenset(("if", "else", "end", "range", "with", "define", "block", "break", "continue", "/*"))
_BEGIN: Final = frozenset(("if", "range", "with", "define", "block", "for", "macro", "call", "filter", "raw"))
_ELSE: Final = frozenset(("else", "elif"))
_BLOCK_HEADER = Pattern(r"(?:^|[ \t:-])[|>][-+]?(\d?)[-+]?[ \t]*(?:#.*)?$")
_UNQUOTED = Pattern(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|(\$\{[A-Za-z_][^{}\s]*\})")
"""Quoted text, or (group 1) a placeholder outside of it."""
_KEY = Pattern(r"[ ]*(?:- +)*")


class Action(NamedTuple):
    """One `{{ ... }}`, `{% ... %}` or `{# ... #}`."""

    start: int
    end: int
    word: str
    """Its first word: `if`, `end`, `$x :=`, `/*`; for output the name that it prints."""
    control: bool
    """Whether it prints nothing itself."""


class Masked(NamedTuple):
    """A text of the same length with its templates masked."""

    text: str
    pieces: Stretches = ()
    """Where they stood, in order."""
    conditions: Stretches = ()
    """What stands between an `if` or a loop and its end, and so may not be there at all, or several times."""


def mask(text: str) -> Masked:
    """Masks what a template engine would replace; comments of YAML are left alone."""
    if "{{" not in text and "{%" not in text:
        return Masked(text)
    actions = list(_outside_comments(text))
    if not actions:
        return Masked(text)
    return Masked(
        _Masker(text, actions).masked(), [(action.start, action.end) for action in actions], _conditions(actions)
    )


def mask_script(text: str) -> Masked:
    """The same for a shell script: lines of actions stay words, so that a command goes on over them."""
    actions = list(_outside_comments(text))
    masker = _Masker(text, actions)
    masker.enter_script()
    return Masked(masker.masked(), [(action.start, action.end) for action in actions], _conditions(actions))


def with_placeholders(masked: Masked, start: int, end: int) -> Masked:
    """Masks `${NAME}` of envsubst too, between two places: in `{ a: ${NAME} }` YAML takes the brace for its own.

    What stands in quotes or in a block scalar is text to YAML anyway, and is left to whoever reads the value.
    """
    text, found = masked.text, []
    lines = _Masker("", [])
    at = start
    while at < end:
        newline = text.find("\n", at, end)
        line_end = end if newline < 0 else newline + 1
        line = text[at:line_end]
        lines.follow(line)
        if "${" in line and not lines.in_block and not line.lstrip().startswith("#"):
            found += [(at + match.start(1), at + match.end(1)) for match in _UNQUOTED.finditer(line) if match[1]]
        at = line_end
    out, here = [], 0
    for first, last in found:
        out += [text[here:first], MASK * (last - first)]
        here = last
    return masked._replace(text="".join([*out, text[here:]]), pieces=sorted([*masked.pieces, *found]))


def actions(text: str) -> Iterator[Action]:
    """Every action of a text, in order; comments of YAML count as text."""
    at = 0
    closed = {opening: text.rfind(end) for opening, end in _ENDS.items()}
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.start()
        if closed[opening.group()] < start + 2:
            at = start + 2
            continue
        at = _end(text, start)
        word = _WORD.match(text, start)
        name = word[1] if word else ""
        control = opening.group() != "{{" or name in _CONTROLS or name.endswith("=")
        yield Action(start, at, name, control)


def _end(text: str, start: int) -> int:
    quoted = _GO.match(text, start, start + _LONGEST) if text.startswith("{{", start) else None
    if quoted is not None:
        return quoted.end()
    return text.index(_ENDS[text[start : start + 2]], start + 2) + 2


_COMMENT = Pattern(r"[ \t]*#")


def _outside_comments(text: str) -> Iterator[Action]:
    line = at = 0
    for action in actions(text):
        line = text.rfind("\n", at, action.start) + 1 or line
        at = action.start
        if not _COMMENT.match(text, line, action.start) or "\n" in text[action.start : action.end]:
            yield action


def _conditions(actions: list[Action]) -> list[tuple[int, int]]:
    """From each `if` or loop to its end, each branch by itself; what is never closed is none."""
    found: list[tuple[int, int]] = []
    open_at: list[list[tuple[int, int]]] = []
    for action in actions:
        if action.control and action.word in _BEGIN:
            open_at.append([(action.start, action.end)])
        elif action.control and action.word in _ELSE and open_at:
            open_at[-1].append((action.start, action.end))
        elif action.control and action.word.startswith("end") and open_at:
            marks = [*open_at.pop(), (action.start, action.end)]
            found += [(before[1], after[0]) for before, after in pairwise(marks)]
    return sorted(found)


class _Block:
    """A block scalar while its lines are read: the column that they have to exceed, and that of its text.

    `indent` is 0 until its first line.
    """

    def __init__(self, parent: int, indent: int) -> None:
        self.parent = parent
        self.indent = indent


class _Masker:
    """Goes through the lines with templates in them, with an eye on block scalars."""

    def __init__(self, text: str, actions: list[Action]) -> None:
        self._text = text
        self._actions = actions
        self._starts = [action.start for action in actions]
        self._out: list[str] = []
        self._block: _Block | None = None
        self._continues = False
        self._next = (-1, -1)

    def enter_script(self) -> None:
        """Takes all that follows for text in which columns do not count."""
        self._block = _Block(-2, -1)

    def masked(self) -> str:
        at = 0
        while at < len(self._text):
            end, actions = self._logical_line(at)
            self._out.append(self._line(at, end, actions))
            at = end
        return "".join(self._out)

    def _logical_line(self, at: int) -> tuple[int, list[Action]]:
        """A line with its break, or several where an action spans them."""
        actions: list[Action] = []
        end = at
        while True:
            newline = self._text.find("\n", end)
            line_end = len(self._text) if newline < 0 else newline + 1
            first = bisect_right(self._starts, end - 1)
            last = bisect_right(self._starts, line_end - 1)
            actions += self._actions[first:last]
            if not actions or actions[-1].end <= line_end:
                return line_end, actions
            end = max(line_end, actions[-1].end)

    def _line(self, at: int, end: int, actions: list[Action]) -> str:
        rest, here = [], at
        for action in actions:
            rest.append(self._text[here : action.start])
            here = action.end
        rest.append(self._text[here:end])
        alone = bool(actions) and not "".join(rest).strip()
        if not alone:
            line = self._replaced(at, end, actions)
            self.follow(line)
            return line
        return self._alone(at, end, actions)

    def _replaced(self, at: int, end: int, actions: list[Action]) -> str:
        out, here = [], at
        for action in actions:
            out.append(self._text[here : action.start])
            out.append(MASK * (action.end - action.start))
            here = action.end
        out.append(self._text[here:end])
        return "".join(out)

    @property
    def in_block(self) -> bool:
        """Whether the line that was followed last is text of a block scalar."""
        return self._block is not None and bool(self._block.indent)

    def follow(self, line: str) -> None:
        """Keeps track of where a block scalar begins and ends."""
        content = line.strip()
        if not content:
            return
        column = len(line) - len(line.lstrip(" "))
        if self._block is not None and column > self._block.parent:
            self._block.indent = self._block.indent or column
            self._continues = content.endswith("\\")
            return
        self._block = None
        header = _BLOCK_HEADER.search(line.rstrip("\r\n"))
        if header is not None and not content.startswith("#"):
            parent = _parent_column(line)
            self._block = _Block(parent, max(parent, 0) + int(header[1]) if header[1] else 0)
        self._continues = False

    def _alone(self, at: int, end: int, actions: list[Action]) -> str:
        """A line of actions only."""
        blank = "".join(character if character in "\r\n" else " " for character in self._text[at:end])
        if self._block is None:
            return blank
        column = actions[0].start - at
        following = self._next_column(end)
        within = following > self._block.parent or column > self._block.parent
        indent = self._block.indent or (following if following > self._block.parent else column)
        if not within or indent <= self._block.parent:
            return blank
        line_end = max(action.end for action in actions) - at
        start = max(column, indent)
        if start + 3 > line_end:
            return blank
        self._block.indent = indent
        tail = " \\" if self._continues else ""
        return " " * start + MASK * (line_end - start - len(tail)) + tail + self._text[at + line_end : end]

    def _next_column(self, at: int) -> int:
        """Of the next line with text of its own; -1 where there is none. Lines are asked for in order."""
        if at <= self._next[0]:
            return self._next[1]
        start, column = at, -1
        while at < len(self._text) and column < 0:
            start = at
            at, actions = self._logical_line(at)
            line = self._replaced(start, at, actions)
            if line.replace(MASK, "").strip():
                column = len(line) - len(line.lstrip(" "))
        self._next = (start if column >= 0 else at, column)
        return column


def _parent_column(line: str) -> int:
    """Column of the key or dash whose value a block scalar is; -1 for a document that is one."""
    prefix = _KEY.match(line)
    column = prefix.end() if prefix else 0
    rest = line[column:]
    if rest[:1] in ("|", ">"):
        return line.rfind("-", 0, column)
    return -1 if rest.startswith("---") else column
