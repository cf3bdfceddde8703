"""Where each character of a YAML scalar stands: the decoding of every style, done again with places.

Follows libyaml's scanner (`yaml_parser_scan_flow_scalar`, `_plain_scalar`, `_block_scalar`), because the value that
the composer gives has to come out the same, character by character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BREAKS: Final = "\n\r\x85\u2028\u2029"
_BLANKS: Final = " \t"
_ESCAPES: Final = {
    "0": "\0", "a": "\x07", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX_LENGTHS: Final = {"x": 2, "u": 4, "U": 8}


class _Decoded:
    """A value under construction: its characters and the place of each."""

    __slots__ = ("characters", "offsets")

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.offsets: list[int] = []

    def add(self, character: str, offset: int) -> None:
        self.characters.append(character)
        self.offsets.append(offset)

    def join(self, other: _Decoded) -> None:
        self.characters += other.characters
        self.offsets += other.offsets


def decode(raw: str, style: str, value: str, base: int) -> Sequence[int]:
    """Offsets into the file for each character of `value`, and one more for its end.

    `raw` is the scalar as written, quotes and block header included, standing at `base` in the file; `style` is
    PyYAML's. A fold has the place of its line break, an escape that of its backslash.
    """
    if not style and raw == value:
        return range(base, base + len(raw) + 1)
    if style and style in "'\"" and raw[1:-1] == value:
        return range(base + 1, base + len(raw))
    if style and style in "|>":
        decoded, end = _block(raw, style, value)
    else:
        decoded, end = _flow(raw, style), len(raw) - len(style)
    if len(decoded.offsets) != len(value):  # odd blanks after a tag or anchor, which libyaml parts otherwise
        return [base] * len(value) + [base + len(raw)]
    return [base + offset for offset in decoded.offsets] + [base + max(end, *decoded.offsets[-1:], 0)]


def _line_break(raw: str, at: int) -> tuple[str, int]:
    """The break at a place as YAML reads it, and the place after it."""
    if raw.startswith("\r\n", at):
        return "\n", at + 2
    return (raw[at] if raw[at] in "\u2028\u2029" else "\n"), at + 1


def _flow(raw: str, style: str) -> _Decoded:
    """Plain, single- and double-quoted."""
    out = _Decoded()
    at, end = len(style), len(raw) - len(style)
    while at < end:
        if raw[at] in _BLANKS or raw[at] in _BREAKS:
            at = _fold(raw, at, end, out)
        elif style == "'" and raw[at] == "'":
            out.add("'", at)
            at += 2
        elif style == '"' and raw[at] == "\\":
            at = _escape(raw, at, end, out)
        else:
            out.add(raw[at], at)
            at += 1
    return out


def _fold(raw: str, at: int, end: int, out: _Decoded, *, after_escaped_break: bool = False) -> int:
    """Blanks and breaks between two words: kept within a line, folded over lines."""
    blanks, leading, trailing = _Decoded(), _Decoded(), _Decoded()
    in_break = after_escaped_break
    while at < end and (raw[at] in _BLANKS or raw[at] in _BREAKS):
        if raw[at] in _BLANKS:
            if not in_break:
                blanks.add(raw[at], at)
            at += 1
            continue
        character, after = _line_break(raw, at)
        (trailing if in_break else leading).add(character, at)
        in_break, at = True, after
    if not in_break:
        out.join(blanks)
    elif leading.characters == ["\n"] and not trailing.characters:
        out.add(" ", leading.offsets[0])
    else:
        if leading.characters != ["\n"]:
            out.join(leading)
        out.join(trailing)
    return at


def _escape(raw: str, at: int, end: int, out: _Decoded) -> int:
    """One escape of a double-quoted scalar; an escaped break joins lines without a blank."""
    code = raw[at + 1]
    if code in _BREAKS:
        return _fold(raw, _line_break(raw, at + 1)[1], end, out, after_escaped_break=True)
    if code in _HEX_LENGTHS:
        after = at + 2 + _HEX_LENGTHS[code]
        out.add(chr(int(raw[at + 2 : after], 16)), at)
        return after
    out.add(_ESCAPES[code], at)
    return at + 2


def _block(raw: str, style: str, value: str) -> tuple[_Decoded, int]:
    """Literal and folded. An indentation indicator counts from a parent that `raw` does not show: it is found out."""
    header_end = next((at for at, character in enumerate(raw) if character in _BREAKS), len(raw))
    header = raw[1:header_end].split("#")[0]
    chomping = next((mark for mark in header if mark in "+-"), "")
    lines = _lines(raw, header_end)
    if any(character.isdigit() for character in header):
        indents = range(1, 1 + max(1, *(_indentation(raw, *line) for line in lines), 1))
    else:
        indents = range(_first_indentation(raw, lines), 1 + _first_indentation(raw, lines))
    decoded = _Decoded()
    for indent in indents:
        decoded = _block_lines(raw, lines, style, chomping, indent)
        if "".join(decoded.characters) == value:
            break
    return decoded, len(raw)


def _lines(raw: str, at: int) -> list[tuple[int, int]]:
    """Starts and ends of the lines after the header, their breaks left out."""
    lines = []
    while at < len(raw):
        start = at = _line_break(raw, at)[1]
        while at < len(raw) and raw[at] not in _BREAKS:
            at += 1
        lines.append((start, at))
    return lines


def _indentation(raw: str, start: int, end: int) -> int:
    return end - start - len(raw[start:end].lstrip(" "))


def _first_indentation(raw: str, lines: list[tuple[int, int]]) -> int:
    """Of the first line with content, as the scanner detects it; blank lines before it count too."""
    widest = 1
    for start, end in lines:
        widest = max(widest, _indentation(raw, start, end))
        if raw[start:end].strip(" "):
            break
    return widest


def _block_lines(raw: str, lines: list[tuple[int, int]], style: str, chomping: str, indent: int) -> _Decoded:
    out, leading, trailing = _Decoded(), _Decoded(), _Decoded()
    leading_blank = False
    for start, end in lines:
        content = min(start + indent, start + _indentation(raw, start, end))
        if content < end:
            blank = raw[content] in _BLANKS
            if style == ">" and leading.characters == ["\n"] and not leading_blank and not blank:
                if not trailing.characters:
                    out.add(" ", leading.offsets[0])
            else:
                out.join(leading)
            out.join(trailing)
            leading, trailing, leading_blank = _Decoded(), _Decoded(), blank
            for at in range(content, end):
                out.add(raw[at], at)
        if end < len(raw):
            into = leading if content < end else trailing
            into.add(_line_break(raw, end)[0], end)
    if chomping != "-":
        out.join(leading)
    if chomping == "+":
        out.join(trailing)
    return out
