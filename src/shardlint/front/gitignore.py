"""The rules of .gitignore, as git documents them, without asking git.

A pattern is translated into one regular expression in which every star is atomic: a star that matched as little as
it could never needs a second try, so a hostile pattern (`*a*a*a*a*b`) costs no more than an honest one.
"""

from __future__ import annotations

import re

from shardlint.findings.records import NamedTuple

_CLASS_NAMES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class Pattern(NamedTuple):
    """One line of a .gitignore."""

    expression: re.Pattern[str]
    negated: bool
    folders_only: bool


class Ignores(NamedTuple):
    """The patterns of one .gitignore. Paths are relative to its folder, with `/` between their parts."""

    patterns: tuple[Pattern, ...]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: ignored; False: taken back by a `!` line; None: not spoken of. The last line that matches wins."""
        path = _as_bytes(path)
        for pattern in reversed(self.patterns):
            if (is_folder or not pattern.folders_only) and pattern.expression.match(path):
                return not pattern.negated
        return None


def parse(text: str) -> Ignores:
    """Read the text of a .gitignore; lines that are no pattern (blank, comment, malformed) match nothing."""
    patterns = (_pattern(line) for line in _as_bytes(text.removeprefix("\ufeff")).split("\n"))
    return Ignores(tuple(pattern for pattern in patterns if pattern))


def _as_bytes(text: str) -> str:
    """One character per byte, because git's `?` and `[...]` stand for one byte."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode("latin-1")


def _pattern(line: str) -> Pattern | None:
    line = _without_trailing_blanks(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[negated:]
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    anchored = "/" in line
    segments = [_any_depth(part) for part in line.removeprefix("/").split("/")]
    if not line or _ends_in_escape(line):
        return None
    translated = _path(segments if anchored else ["**", *segments])
    return Pattern(re.compile(translated, re.DOTALL), negated, folders_only) if translated else None


def _any_depth(part: str) -> str:
    """Git takes `***` for `**`."""
    return "**" if len(part) > 1 and not part.strip("*") else part


def _without_trailing_blanks(line: str) -> str:
    stripped = line.rstrip(" ")
    return stripped + " " if stripped != line and _ends_in_escape(stripped) else stripped


def _ends_in_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _path(segments: list[str]) -> str | None:
    """The expression for a whole path; None for a malformed one."""
    parts: list[str] = []
    run: list[str] = []
    floating = False
    for segment in segments[:-1]:
        if segment == "**":
            parts.append(_run(run, floating))
            run, floating = [], True
        else:
            piece = _segment(segment)
            if piece is None:
                return None
            run.append(piece + "/")
    if segments[-1] == "**":  # everything below; at least one more part
        return "".join(parts) + _run(run, floating) + r"[^/].*\Z"
    last = _segment(segments[-1])
    if last is None:
        return None
    # the last run must reach the end of the path, so it alone may be tried at every part
    return "".join(parts) + (r"(?:[^/]+/)*" if floating else "") + "".join(run) + last + r"\Z"


def _run(run: list[str], floating: bool) -> str:
    """Whole parts in a row; a floating run begins at the first part where it matches."""
    text = "".join(run)
    return rf"(?>(?:[^/]+/)*?{text})" if floating and text else text


def _segment(segment: str) -> str | None:
    """One part of a path: every star but the last takes the first match, the last one what is left."""
    pieces = _pieces(segment)
    if pieces is None:
        return None
    first, *rest = pieces
    if not rest:
        return first
    *middle, last = rest
    not_empty = "(?=[^/])" if not first else ""
    return (
        not_empty + first + "".join(rf"(?>[^/]*?{piece})" for piece in middle if piece) + "[^/]*" + last + "(?=/|\\Z)"
    )


def _pieces(segment: str) -> list[str] | None:
    """The stretches between stars, each as an expression."""
    pieces, at = [""], 0
    while at < len(segment):
        character = segment[at]
        at += 1
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "[^/]"
        elif character == "[":
            members, at = _members(segment, at)
            if members is None:
                return None
            pieces[-1] += members
        else:
            if character == "\\":
                character, at = segment[at : at + 1], at + 1
            pieces[-1] += re.escape(character)
    return pieces


_MEMBER = re.compile(r"\[:(?P<name>\w+):\]|(?P<low>\\.|.)(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL)


def _members(segment: str, at: int) -> tuple[str | None, int]:
    """The expression of `[...]` whose first character stands at `at`, and the place behind it."""
    negated = segment[at : at + 1] in ("!", "^")
    at += negated
    parts: list[str] = []
    while at < len(segment) and (segment[at] != "]" or not parts):
        match = _MEMBER.match(segment, at)
        assert match is not None  # the expression takes any character
        parts.append(_member(match))
        at = match.end()
    if at >= len(segment):
        return None, at
    members = "".join(parts)
    if not members:  # only reversed ranges such as [z-a]
        return ("[^/]" if negated else r"(?!)"), at + 1
    return (rf"(?!/)[{'^' if negated else ''}{members}]"), at + 1


def _member(match: re.Match[str]) -> str:
    if match["name"]:
        return _CLASS_NAMES.get(match["name"], "")
    low = match["low"].removeprefix("\\") or "\\"
    if not match["high"]:
        return re.escape(low)
    high = match["high"].removeprefix("\\") or "\\"
    return f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
