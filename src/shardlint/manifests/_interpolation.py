"""Compose's own reading of text: `${NAME:-default}` before YAML values are used, and words out of a command string."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._splices import Splice
from shardlint.text.source import Fragment

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-?+]")
_DEPTH = 16
"""Defaults inside defaults that are followed; deeper ones count as unknown."""
_ESCAPABLE = '"\\$`\n'


def interpolate(fragment: Fragment, variables: Mapping[str, Maybe[str]], depth: int = _DEPTH) -> Fragment:
    """Replaces variables by the rules of Compose: `$$` is `$`, defaults count, what is not set is a hole."""
    if "$" not in fragment.text:
        return fragment
    out, closing = Splice(fragment), _closing(fragment.text)
    at = 0
    while at < len(fragment.text):
        at = _step(fragment, at, closing.get(at), out, variables, depth)
    return out.fragment()


def _step(
    fragment: Fragment, at: int, end: int | None, out: Splice, variables: Mapping[str, Maybe[str]], depth: int
) -> int:
    """Handles what stands at one place, an expression up to `end` where one begins there; returns the next place."""
    text = fragment.text
    if text[at] != "$" or text.startswith("$$", at):
        out.copy(fragment, at)
        return at + (2 if text[at] == "$" else 1)
    if end is not None:
        _braced(fragment, at, end, out, variables, depth)
        return end + 1
    if (name := _NAME.match(text, at + 1)) is not None:
        _put(fragment, at, name.end(), out, variables.get(name.group()))
        return name.end()
    out.copy(fragment, at)
    return at + 1


def _braced(
    fragment: Fragment, at: int, end: int, out: Splice, variables: Mapping[str, Maybe[str]], depth: int
) -> None:
    text = fragment.text
    name = _NAME.match(text, at + 2, end)
    operator = _OPERATOR.match(text, name.end(), end) if name else None
    value = variables.get(name.group()) if name else None
    blank = isinstance(value, Located) and not value.value
    absent = value is None or (blank and operator is not None and operator.group().startswith(":"))
    kind = operator.group()[-1] if operator else ""
    if operator is None or isinstance(value, Unknown) or not depth or kind == "?":
        _put(fragment, at, end + 1, out, value)
    elif (kind == "-" and absent) or (kind == "+" and not absent):
        out.extend(interpolate(fragment.part(operator.end(), end), variables, depth - 1))
    elif kind == "-" or value is None:
        _put(fragment, at, end + 1, out, value)


def _put(fragment: Fragment, start: int, end: int, out: Splice, value: Maybe[str] | None) -> None:
    if isinstance(value, Located):
        out.replace(fragment, start, end, value.value)
    else:
        spelled = fragment.text[start:end]
        reason = value.reason if value else f"{spelled} is not set in this file"
        out.hole(fragment, start, end, Unknown(reason, fragment.span(start, end), spelled))


def _closing(text: str) -> dict[int, int]:
    """Where each `${` that is closed has its brace."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for place in re.finditer(r"\$\$|\$\{|\}", text):
        if place.group() == "${":
            opened.append(place.start())
        elif place.group() == "}" and opened:
            found[opened.pop()] = place.start()
    return found


def split(fragment: Fragment) -> list[Fragment]:
    """The words of a command string, as Compose splits it: quotes and backslashes as in a shell, nothing expanded.

    Like its splitter, this stops at an unquoted `;`, `&`, `|`, `<` or `>`.
    """
    return list(_words(fragment))


def _words(fragment: Fragment) -> Iterator[Fragment]:
    text, quote, at = fragment.text, "", 0
    out: Splice | None = None
    while at < len(text):
        character = text[at]
        if character == "\\" and quote != "'" and _escapes(text, at, quote):
            out = out or Splice(fragment)
            out.copy(fragment, at + 1)
            at += 1
        elif character == quote or (not quote and character in "'\""):
            quote = "" if quote else character
            out = out or Splice(fragment)
        elif not quote and character in " \t\r\n":
            if out is not None:
                yield out.fragment()
            out = None
        elif not quote and character in ";&|<>":
            break
        else:
            out = out or Splice(fragment)
            out.copy(fragment, at)
        at += 1
    if out is not None:
        yield out.fragment()


def _escapes(text: str, at: int, quote: str) -> bool:
    following = text[at + 1 : at + 2]
    return bool(following) and (not quote or following in _ESCAPABLE)
