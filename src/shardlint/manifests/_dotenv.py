"""`.env` files: lines of `NAME=value`."""

from __future__ import annotations

import re

from shardlint.findings import Located, Maybe
from shardlint.text.source import Source

_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*   # name
        (?: "((?:[^"\\\n]|\\.)*)" | '([^'\n]*)' | ([^\n]*?)(?=[ \t]+\#|[ \t]*$) )""",
    re.VERBOSE | re.MULTILINE,
)


def variables_of(source: Source) -> dict[str, Maybe[str]]:
    """The variables that a `.env` file sets, each with its place; the last of several wins."""
    found: dict[str, Maybe[str]] = {}
    for line in _LINE.finditer(source.text):
        group = next((number for number in (2, 3, 4) if line.group(number) is not None), 4)
        found[line.group(1)] = Located(line.group(group), source.span(*line.span(group)), line.group(group))
    return found
