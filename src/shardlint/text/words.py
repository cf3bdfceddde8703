"""Shell words: quotes, escapes and variables of bash, each character with the place where somebody wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Final

from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.text.arithmetic import calculate
from shardlint.text.source import ALL_GPUS, MASK, Fragment, Source

MAX_DEPTH: Final = 32
"""Expansions inside expansions that are followed."""
MAX_CHARACTERS: Final = 200_000
MAX_PIECES: Final = 4_000
"""Of one value: `X=$X$X` doubles with every line."""


class Piece(NamedTuple):
    """A stretch of a value that was written in one place.

    `offsets` are places in `source` for each character; None where the text was worked out (arithmetic) or its
    place is known only as a whole (`at`).  `start` and `end` bound it in the source.  A `hole` is what cannot be
    known; its text is one MASK.
    """

    text: str
    source: Source | None
    start: int
    end: int
    offsets: Sequence[int] | None = None
    at: Located[str] | None = None
    hole: Unknown | None = None
    splits: bool = False
    """From an unquoted expansion: blanks in it end a word."""
    quoted: bool = False
    """Makes a word even where it is empty."""
    breaks: bool = False
    """No text: a word ends here (`"${A[@]}"`)."""
    written: tuple[int, int] | None = None
    """For a piece that came from a variable: where the text that it is part of stands in that assignment."""
    used: tuple[int, int] | None = None
    """For a piece that came from a variable: the expression that brought it here."""

    def cut(self, first: int, last: int) -> Piece:
        """`text[first:last]`, placed as exactly as the whole."""
        text = self.text[first:last]
        if self.offsets is None or not text:
            return self._replace(text=text)
        offsets = self.offsets[first:last]
        place = offsets[0], offsets[-1] + 1
        written = place if self.written == (self.start, self.end) else self.written
        return self._replace(text=text, offsets=offsets, start=place[0], end=place[1], written=written)

    def place(self) -> tuple[Span | None, str]:
        """Where it was first written, and how."""
        if self.at is not None:
            return self.at.span, self.at.spelled
        assert self.source is not None
        return self.source.span(self.start, self.end), self.source.text[self.start : self.end]


Value = tuple[Piece, ...]
Array = list[Value]
BREAK: Final = Piece("", None, 0, 0, breaks=True)


def text_of(value: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in value)


def hole_of(value: Iterable[Piece]) -> Unknown | None:
    """The first thing in it that cannot be known."""
    return next((piece.hole for piece in value if piece.hole is not None), None)


_OWN_FOLDER = re.compile(r"dirname|BASH_SOURCE|\$\{0%")


def path_of(value: Sequence[Piece]) -> str | None:
    """A path that a script names; what works out the script's own folder before it is left out. None: not known."""
    if not value or value[0].hole is None:
        return None if hole_of(value) is not None else text_of(value)
    rest = value[1:]
    in_own_folder = _OWN_FOLDER.search(value[0].hole.spelled) and text_of(rest).startswith("/")
    return text_of(rest).lstrip("/") if in_own_folder and hole_of(rest) is None else None


def given(word: Maybe[str], source: Source) -> Value:
    """A value from outside the script (a container's env); placed exactly where it stands in the same file."""
    if isinstance(word, Unknown):
        return (Piece(MASK, source, 0, 0, at=Located("", word.span, word.spelled), hole=word),)
    if word.span is not None and word.span.path == source.path:
        start = source.offset(word.span.line, word.span.column)
        end = source.offset(word.span.end_line, word.span.end_column)
        inner = source.text.find(word.value, start, end) if word.value else -1
        if inner >= 0:
            offsets = range(inner, inner + len(word.value))
            return (Piece(word.value, source, inner, offsets.stop, offsets, quoted=True),)
    return (Piece(word.value, source, 0, 0, at=word, quoted=True),)


def as_fragment(value: Value, source: Source) -> Fragment:
    """A value as a text to read in turn (`bash -c "..."`); what cannot be known stands as holes."""
    text: list[str] = []
    offsets: list[int] = []
    holes: dict[int, Unknown] = {}
    for piece in value:
        places = _places(piece, source)
        if piece.hole is not None:
            holes[len(offsets)] = piece.hole
        text.append(MASK * len(places) if piece.hole is not None else piece.text)
        offsets.extend(places)
    return Fragment("".join(text), source, [*offsets, offsets[-1] + 1 if offsets else 0], holes)


def _places(piece: Piece, source: Source) -> Sequence[int]:
    """A place in the file for each character; a hole is as long as the expression that it stands for."""
    start, end = piece.used or (piece.start, piece.end)
    if piece.hole is not None:
        return range(start, max(end, start + 1))
    here = piece.source is source and piece.at is None
    return piece.offsets if here and piece.offsets is not None else [start] * len(piece.text)


def fields(pieces: Iterable[Piece]) -> list[Value]:
    """The words that pieces make: unquoted expansions are split at blanks, as bash does with the usual IFS."""
    done: list[Value] = []
    current: list[Piece] = []

    def flush() -> None:
        if any(piece.text or piece.quoted for piece in current):
            done.append(tuple(current))
        current.clear()

    for piece in pieces:
        if piece.breaks:
            flush()
        elif not piece.splits or piece.hole is not None:
            current.append(piece)
        else:
            at = 0
            for blanks in re.finditer(r"[ \t\n]+", piece.text):
                current.append(piece.cut(at, blanks.start()))
                flush()
                at = blanks.end()
            current.append(piece.cut(at, len(piece.text)))
    flush()
    return done


def word_of(value: Value, fragment: Fragment, start: int, end: int) -> Located[str] | Unknown:
    """A word written at `fragment.text[start:end]`.

    One that came whole from a variable stands where that was written (the value to change); any other where the
    command has it.  `spelled` is the text at that place.
    """
    span, spelled = fragment.span(start, end), fragment.part(start, end).restored()
    hole = hole_of(value)
    if hole is not None:
        return Unknown(hole.reason, span, spelled, hole.settle_by)
    text = text_of(value)
    pieces = [piece for piece in value if piece.text] or list(value[:1])
    foreign = [piece for piece in pieces if piece.used is not None]
    if len(pieces) == 1:
        return Located(text, *pieces[0].place())
    stretch = _stretch(text, pieces) if len(foreign) == len(pieces) else None
    return stretch or Located(text, span, spelled)


def value_of(value: Value) -> Located[str] | Unknown:
    """A variable's value as one text, blanks and all, where it was assigned."""
    hole = hole_of(value)
    if hole is not None:
        return hole
    text = text_of(value)
    pieces = [piece for piece in value if piece.text] or list(value[:1])
    if len(pieces) == 1:
        return Located(text, *pieces[0].place())
    assigned = [piece._replace(written=_written(piece)) for piece in pieces]
    return _stretch(text, assigned) or Located(text, *(pieces[0].place() if pieces else (None, "")))


def _stretch(text: str, pieces: list[Piece]) -> Located[str] | None:
    """Several pieces that stand one after another in one place."""
    if not pieces:
        return None
    source = pieces[0].source
    ranges = [piece.written or (piece.start, piece.end) for piece in pieces]
    ordered = all(before[1] <= after[0] for before, after in pairwise(ranges))
    if source is None or not ordered or any(piece.source is not source or piece.at for piece in pieces):
        return None
    start, end = ranges[0][0], ranges[-1][1]
    return Located(text, source.span(start, end), source.text[start:end])


_BARE = re.compile(r"[^\\'\"$`]+")
_DOUBLE = re.compile(r"[^\\\"$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|\d|[@*#?$!-]", re.ASCII)
_PARAMETER = re.compile(
    r"(?P<prefix>[!#]?)(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?"
    r"(?P<operator>:[-=?+]|[-=?+]|%%|%|##|#|,,|,|\^\^|\^|//|/|:|@)?",
    re.ASCII,
)
_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL | re.ASCII
)
_ANSI_LETTERS: Final = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_CLOSERS: Final = {"(": ")", "{": "}", "[": "]", "`": "`", '"': '"'}

Lookup = Callable[[str], "Value | Array | None"]
"""A variable or positional parameter by name; None where the file does not set it."""


class Expander:
    """Expands stretches of one fragment; `lookup` and `assign` (for `${X:=d}`) are the shell's variables."""

    def __init__(self, fragment: Fragment, lookup: Lookup, assign: Callable[[str, Value], None]) -> None:
        self.fragment = fragment
        self.text = fragment.text
        self._lookup = lookup
        self._assign = assign
        self._depth = 0

    def expand(self, start: int, end: int, *, double: bool = False) -> list[Piece]:
        """The pieces of `text[start:end]`, read as unquoted shell text or as the inside of double quotes."""
        out: list[Piece] = []
        if self._depth >= MAX_DEPTH:
            return [self._unknown(start, end, "it is nested too deeply")]
        self._depth += 1
        at = start
        while at < end:
            at = self._step(at, end, double, out)
        self._depth -= 1
        if len(out) > MAX_PIECES or sum(len(piece.text) for piece in out) > MAX_CHARACTERS:
            return [self._unknown(start, end, "it is too long")]
        return out

    def _step(self, at: int, end: int, double: bool, out: list[Piece]) -> int:
        plain = (_DOUBLE if double else _BARE).match(self.text, at, end)
        if plain:
            self._literal(at, plain.end(), double, out)
            return plain.end()
        character = self.text[at]
        if character == "\\":
            return self._escape(at, end, double, out)
        if character == "$":
            return self._dollar(at, end, double, out)
        if character == "`":
            after = min(closing(self.text, at + 1, "`", end) + 1, end)
            out.append(self._runtime(at, after, double))
            return after
        if character == "'" and not double:
            close = self.text.find("'", at + 1, end)
            close = end if close < 0 else close
            self._literal(at + 1, close, True, out)
            return close + 1
        if character == '"' and not double:
            close = closing(self.text, at + 1, '"', end)
            if close == at + 1:
                out.append(self._piece("", at, close, quoted=True))
            out.extend(self.expand(at + 1, close, double=True))
            return close + 1
        self._literal(at, at + 1, double, out)
        return at + 1

    def _literal(self, start: int, end: int, quoted: bool, out: list[Piece]) -> None:
        """Text as it stands; runs of MASK in it are holes."""
        for run in re.finditer(f"{MASK}+|[^{MASK}]+", self.text[start:end]):
            first, last = start + run.start(), start + run.end()
            if self.text[first] == MASK:
                out.extend(self._masked(first, last, quoted))
            else:
                offsets = self.fragment.offsets[first:last]
                out.append(
                    Piece(run.group(), self.fragment.source, offsets[0], offsets[-1] + 1, offsets, quoted=quoted)
                )
        if start == end:
            out.append(self._piece("", start, end, quoted=quoted))

    def _masked(self, first: int, last: int, quoted: bool) -> Iterable[Piece]:
        known = [at for at in range(first, last) if at in self.fragment.holes] or [first]
        for at in known:
            hole = self.fragment.holes.get(at)
            if hole is None:
                spelled = self.fragment.part(first, last).restored()
                hole = Unknown("templated", self.fragment.span(first, last), spelled, "render the template first")
            yield self._piece(MASK, first, last, hole=hole, quoted=quoted)

    def _escape(self, at: int, end: int, double: bool, out: list[Piece]) -> int:
        after = self.text[at + 1 : at + 2] if at + 1 < end else ""
        if after == "\n":
            return at + 2
        if not after or (double and after not in '$`"\\'):
            self._literal(at, at + 1, double, out)
            return at + 1
        if after == MASK:
            return at + 1
        self._literal(at + 1, at + 2, True, out)
        return at + 2

    def _dollar(self, at: int, end: int, double: bool, out: list[Piece]) -> int:
        text, following = self.text, self.text[at + 1 : at + 2] if at + 1 < end else ""
        if following in ("'", '"') and not double:
            return self._ansi(at, end, out) if following == "'" else self._step(at + 1, end, double, out)
        if text.startswith("$((", at):
            close = closing(text, at + 2, "(", end)
            if close < end and text[close - 1] == ")":
                return self._arithmetic(at, at + 3, close - 1, close + 1, double, out)
        if following in ("(", "{", "["):
            close = closing(text, at + 2, following, end)
            after = min(close + 1, end)
            if following == "[":
                return self._arithmetic(at, at + 2, close, after, double, out)
            if following == "(":
                out.append(self._runtime(at, after, double))
            else:
                out.extend(self._parameter(at, at + 2, close, after, double))
            return after
        name = _NAME.match(text, at + 1, end)
        if name is None:
            self._literal(at, at + 1, double, out)
            return at + 1
        out.extend(self._variable(name.group(), at, name.end(), double))
        return name.end()

    def _ansi(self, at: int, end: int, out: list[Piece]) -> int:
        close = at + 2
        while close < end and self.text[close] != "'":
            close += 2 if self.text[close] == "\\" else 1
        close = min(close, end)
        here = at + 2
        out.append(self._piece("", at, close, quoted=True))
        for escape in _ANSI.finditer(self.text, here, close):
            if here < escape.start():
                self._literal(here, escape.start(), True, out)
            out.append(self._piece(_ansi_character(escape), escape.start(), escape.end(), quoted=True))
            here = escape.end()
        if here < close:
            self._literal(here, close, True, out)
        return close + 1

    def _arithmetic(self, at: int, start: int, end: int, after: int, double: bool, out: list[Piece]) -> int:
        pieces = self.expand(start, end, double=True)
        hole = hole_of(pieces)
        result = calculate(text_of(pieces), self._number) if hole is None else hole.reason
        if isinstance(result, int):
            out.append(self._piece(str(result), at, after, quoted=double))
        else:
            out.append(self._unknown(at, after, result, quoted=double))
        return after

    def _number(self, name: str) -> str | Unknown:
        """The text of a variable in arithmetic, where an unset one would count 0: not to be relied on."""
        value = self._lookup(name)
        if value is None or isinstance(value, list):
            return Unknown(_unset(name))
        return hole_of(value) or text_of(value)

    def _variable(self, name: str, at: int, after: int, double: bool) -> list[Piece]:
        value = self._lookup(name)
        if value is None:
            return [self._unknown(at, after, _unset(name), quoted=double)]
        if isinstance(value, list):
            if name in "@*":
                return self._all(value, name, at, after, double)
            value = value[0] if value else ()
        return self._brought(value, at, after, double)

    def _brought(self, value: Value, at: int, after: int, double: bool) -> list[Piece]:
        """A variable's pieces where they are used."""
        used = self._range(at, after)
        if double and not value:
            return [self._piece("", at, after, quoted=True)]
        return [piece._replace(splits=not double, quoted=double, written=_written(piece), used=used) for piece in value]

    def _all(self, array: Array, index: str, at: int, after: int, double: bool) -> list[Piece]:
        """`"${A[@]}"` one word per element, `"${A[*]}"` all in one, unquoted both split further."""
        out: list[Piece] = []
        for position, element in enumerate(array):
            if position:
                out.append(self._piece(" ", at, after, quoted=True) if double and index == "*" else BREAK)
            out.extend(self._brought(element, at, after, double))
        return out

    def _parameter(self, at: int, start: int, end: int, after: int, double: bool) -> list[Piece]:
        """`${...}`."""
        match = _PARAMETER.match(self.text, start, end)
        if match is None:
            return [self._unknown(at, after, f"{self.text[at:after]} is not understood", quoted=double)]
        value, index = self._lookup(match["name"]), match["index"]
        if match["prefix"]:
            return [self._prefixed(match, value, at, after, double)]
        operator = match["operator"] or ""
        if operator in _DEFAULTS:
            return self._default(match, value, at, after, double, end)
        if value is None:
            return [self._unknown(at, after, _unset(match["name"]), quoted=double)]
        if operator:
            return self._changed(match, value, at, after, double, end)
        if match.end() < end:
            return [self._unknown(at, after, f"{self.text[at:after]} is not understood", quoted=double)]
        return self._indexed(value, index or match["name"], at, after, double)

    def _indexed(self, value: Value | Array, index: str, at: int, after: int, double: bool) -> list[Piece]:
        array = value if isinstance(value, list) else [value]
        if index in ("@", "*"):
            return self._all(array, index, at, after, double)
        if index.lstrip("-").isdigit() or not isinstance(value, list):
            position = int(index) if index.lstrip("-").isdigit() and isinstance(value, list) else 0
            if -len(array) <= position < len(array):
                return self._brought(array[position], at, after, double)
            return [self._piece("", at, after, quoted=double)]
        return self._brought(array[0], at, after, double) if array else [self._piece("", at, after, quoted=double)]

    def _default(
        self, match: re.Match[str], value: Value | Array | None, at: int, after: int, double: bool, end: int
    ) -> list[Piece]:
        """`:-`, `:=`, `:?`, `:+`, and the same without the colon."""
        operator, name = match["operator"], match["name"]
        flat = _flat(value)
        missing = flat is None or (operator[0] == ":" and not text_of(flat))
        if operator[-1] == "+":
            if missing:
                return [self._piece("", at, after, quoted=double)]
            hole = hole_of(flat or ())
            if hole is not None:
                return [self._unknown(at, after, hole.reason, quoted=double)]
            return self._word(match.end(), end, double)
        if not missing:
            assert value is not None
            return self._indexed(value, match["index"] or name, at, after, double)
        if operator[-1] == "?":
            return [self._unknown(at, after, _unset(name), quoted=double)]
        pieces = self._word(match.end(), end, double)
        if operator[-1] == "=":
            self._assign(name, tuple(pieces))
        return pieces or [self._piece("", at, after, quoted=double)]

    def _word(self, start: int, end: int, double: bool) -> list[Piece]:
        """The word of `${X:-word}`: unquoted parts of it are split as the expansion itself would be."""
        pieces = self.expand(start, end, double=double)
        return [piece if piece.quoted or piece.hole else piece._replace(splits=not double) for piece in pieces]

    def _prefixed(self, match: re.Match[str], value: Value | Array | None, at: int, after: int, double: bool) -> Piece:
        """`${#X}` and `${!X}`."""
        expression = self.text[at:after]
        if match["prefix"] == "!" or value is None or hole_of(_flat(value) or ()) or match["operator"]:
            return self._unknown(at, after, f"decided when it runs: {expression}", quoted=double)
        if isinstance(value, list):
            length = len(value) if match["index"] in ("@", "*") else len(text_of(value[0])) if value else 0
        else:
            length = len(text_of(value))
        return self._piece(str(length), at, after, quoted=double)

    def _changed(
        self, match: re.Match[str], value: Value | Array, at: int, after: int, double: bool, end: int
    ) -> list[Piece]:
        """Prefixes and suffixes taken off, upper and lower case; the rest is not worth knowing."""
        flat = _flat(value)
        argument = self.expand(match.end(), end, double=True)
        operator = match["operator"]
        known = flat is not None and hole_of(flat) is None and hole_of(argument) is None and not match["index"]
        change = _CHANGES.get(operator)
        if not known or change is None or flat is None:
            return [self._unknown(at, after, f"decided when it runs: {self.text[at:after]}", quoted=double)]
        kept, text = change(text_of(flat), text_of(argument))
        pieces = _cut(flat, kept) if text is None else (self._piece(text, at, after),)
        return self._brought(tuple(pieces), at, after, double)

    def _range(self, start: int, end: int) -> tuple[int, int]:
        offsets = self.fragment.offsets
        return offsets[start], offsets[max(start, end - 1)] + (1 if end > start else 0)

    def _piece(self, text: str, start: int, end: int, *, hole: Unknown | None = None, quoted: bool = False) -> Piece:
        first, last = self._range(start, end)
        return Piece(text, self.fragment.source, first, last, hole=hole, quoted=quoted)

    def _unknown(self, start: int, end: int, reason: str, *, quoted: bool = False) -> Piece:
        spelled = self.fragment.part(start, end).restored()
        hole = Unknown(reason, self.fragment.span(start, end), spelled)
        return self._piece(MASK, start, end, hole=hole, quoted=quoted)

    def _runtime(self, start: int, end: int, quoted: bool) -> Piece:
        spelled = self.fragment.part(start, end).restored()
        counts = _COUNTS_GPUS.search(spelled) is not None
        return self._unknown(start, end, ALL_GPUS if counts else f"decided when it runs: {spelled}", quoted=quoted)


_COUNTS_GPUS = re.compile(
    r"nvidia-smi\s+(?:-L|--list-gpus|--query-gpu=\S+(?:\s+--format=\S+)?)\s*(?:2>\S+\s*)?\|\s*(?:wc\s+-l|grep\s+-c)"
    r"|torch\.cuda\.device_count\(\)"
)
_DEFAULTS: Final = frozenset((":-", "-", ":=", "=", ":?", "?", ":+", "+"))


def _prefix(text: str, pattern: str, *, longest: bool) -> tuple[slice, None]:
    lengths = range(len(text), -1, -1) if longest else range(len(text) + 1)
    return slice(next((length for length in lengths if _like(text[:length], pattern)), 0), None), None


def _suffix(text: str, pattern: str, *, longest: bool) -> tuple[slice, None]:
    starts = range(len(text) + 1) if longest else range(len(text), -1, -1)
    return slice(0, next((start for start in starts if _like(text[start:], pattern)), len(text))), None


def _like(text: str, pattern: str) -> bool:
    return len(text) + len(pattern) < 1000 and fnmatchcase(text, pattern)


_CHANGES: Final[dict[str, Callable[[str, str], tuple[slice, str | None]]]] = {
    "#": lambda text, pattern: _prefix(text, pattern, longest=False),
    "##": lambda text, pattern: _prefix(text, pattern, longest=True),
    "%": lambda text, pattern: _suffix(text, pattern, longest=False),
    "%%": lambda text, pattern: _suffix(text, pattern, longest=True),
    ",,": lambda text, _: (slice(None), text.lower()),
    "^^": lambda text, _: (slice(None), text.upper()),
}


def _cut(value: Value, kept: slice) -> Value:
    start, stop, _ = kept.indices(len(text_of(value)))
    out, at = [], 0
    for piece in value:
        first, last = max(start - at, 0), min(stop - at, len(piece.text))
        if first < last:
            out.append(piece.cut(first, last))
        at += len(piece.text)
    return tuple(out)


def _flat(value: Value | Array | None) -> Value | None:
    if isinstance(value, list):
        return tuple(piece for element in value for piece in element) if value else None
    return value


def _written(piece: Piece) -> tuple[int, int]:
    return piece.used or (piece.start, piece.end)


def _unset(name: str) -> str:
    if name.isdigit() or name in "@*":
        return f"${name} is given when it runs"
    if name in "#?$!-":
        return f"decided when it runs: ${name}"
    return f"${name} is not set in this file"


def _ansi_character(escape: re.Match[str]) -> str:
    hexadecimal = escape[1] or escape[2] or escape[3]
    if hexadecimal:
        code = int(hexadecimal, 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if escape[4]:
        return chr(int(escape[4], 8) & 0xFF)
    return _ANSI_LETTERS.get(escape[5], escape[5] if escape[5] in "\\'\"?" else "\\" + escape[5])


def closing(text: str, at: int, opener: str, end: int) -> int:
    """The place of what closes `opener`, whose inside begins at `at`; `end` where nothing does."""
    waiting = [_CLOSERS[opener]]
    while at < end:
        character = text[at]
        inside = waiting[-1]
        if character == "\\":
            at += 1
        elif character == inside:
            waiting.pop()
            if not waiting:
                return at
        elif character == "'" and inside not in ('"', "`"):
            close = text.find("'", at + 1, end)
            at = end if close < 0 else close
        elif (character == '"' and inside != "`") or (character == "`" and inside != "`"):
            waiting.append(character)
        elif (character in "({" and text[at - 1] == "$") or (character == "(" and inside == ")"):
            waiting.append(_CLOSERS[character])
        at += 1
    return end
