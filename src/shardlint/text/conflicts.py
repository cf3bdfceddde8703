"""Conflicts that Git left in a text: read with one side, every character of which stays where it is."""

from __future__ import annotations

import re

_BEGIN = re.compile(r"<{7}(?: |\r?\n|\Z)")
_OTHER = re.compile(r"(?:={7}|\|{7})(?: |\r?\n|\Z)")
_END = re.compile(r">{7}(?: |\r?\n|\Z)")
_LINE_GOES_ON = "\\"


def ours(text: str) -> str:
    """The text with the first side of each conflict, the markers and other sides blank.

    Blank lines after a line that a backslash continues lose their ends, so that it goes on with what follows them.
    """
    kept: list[str] = []
    goes_on = in_conflict = is_other = False
    for line in text.splitlines(keepends=True):
        begins, changes, ends = _BEGIN.match(line), in_conflict and _OTHER.match(line), in_conflict and _END.match(line)
        if begins or changes or ends or is_other:
            kept.append(_blank(line, keep_end=not goes_on))
            in_conflict, is_other = not ends, not (begins or ends)
            continue
        kept.append(line)
        goes_on = line.rstrip("\r\n").endswith(_LINE_GOES_ON)
    return "".join(kept)


def _blank(line: str, *, keep_end: bool) -> str:
    inner = line.rstrip("\r\n")
    return " " * len(inner) + (line[len(inner) :] if keep_end else " " * (len(line) - len(inner)))
