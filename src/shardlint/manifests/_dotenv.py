"""Files of variables: `.env` and `env_file` as Compose reads them, `--env-file` as `docker run` does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._interpolation import interpolate
from shardlint.manifests._splices import Splice, word_of
from shardlint.text.source import Fragment, Source

_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*   # name
        (?: "((?:[^"\\\n]|\\.)*)" | '([^'\n]*)' | ([^\n]*?)(?=[ \t]+\#|[ \t\r]*$) )""",
    re.VERBOSE | re.MULTILINE,
)
_RAW_LINE = re.compile(r"^[ \t]*(?!#)([^\s=]+)[ \t]*(?:(=)([^\r\n]*))?", re.MULTILINE)
_ESCAPE = re.compile(r"\\([nrt\"\\$])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "$": "$$"}


def variables_of(source: Source, known: Mapping[str, Maybe[str]]) -> dict[str, Maybe[str]]:
    """The variables that a file sets for Compose, each with its place; the last of several wins.

    Variables in values that are not in single quotes are replaced by those of the lines above and by `known`.
    """
    found: dict[str, Maybe[str]] = {}
    for line in _LINE.finditer(source.text):
        group = next((number for number in (2, 3, 4) if line.group(number) is not None), 4)
        value = _stretch(source, *line.span(group))
        if group == 2 and "\\" in value.text:
            value = _unescaped(value)
        if group != 3 and "$" in value.text:
            value = interpolate(value, {**known, **found})
        found[line.group(1)] = word_of(value)
    return found


def raw_variables_of(source: Source, outer: Mapping[str, Maybe[str]]) -> Iterator[tuple[str, Maybe[str]]]:
    """The variables that a file sets for `docker run`: all behind the sign is the value, quotes too.

    A name alone takes the value of `outer`, the caller's environment.
    """
    for line in _RAW_LINE.finditer(source.text):
        name, place = line[1], source.span(*line.span(1))
        if line[2]:
            yield name, Located(line[3], source.span(*line.span(3)), line[3])
        else:
            yield name, outer.get(name) or Unknown("taken from the caller's environment", place, name)


def _stretch(source: Source, start: int, end: int) -> Fragment:
    return Fragment(source.text[start:end], source, range(start, end + 1))


def _unescaped(value: Fragment) -> Fragment:
    """Backslashes in double quotes taken away; a dollar that they keep is doubled, as Compose escapes it."""
    out = Splice(value)
    at = 0
    for escape in _ESCAPE.finditer(value.text):
        out.extend(value.part(at, escape.start()))
        out.replace(value, *escape.span(), _ESCAPED.get(escape[1], escape[1]))
        at = escape.end()
    out.extend(value.part(at, len(value.text)))
    return out.fragment()
