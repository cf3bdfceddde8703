"""The text of a flag's value as the engine converts it, with its words where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from shardlint.engines.tables import Era, Flag, Table
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MOST_DIGITS = 400
"""Longer numbers are no sizes, and Python refuses to read some of them."""

JSON_KINDS = ("json", "object")

DEEPEST = 64
"""Levels of JSON in a flag; real ones have five."""

_BRACKETS = Pattern(r"[][{}]")
_SIZE = Pattern(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_JSON_TEXT = Pattern(r'("(?:[^"\\]|\\.)*")')
_JSON_SIZE = Pattern(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")


class BadValue(NamedTuple):
    """The engine's words for a value that it refuses, and what was plainly meant, if it is plain."""

    message: str
    meant: Any = None
    of_release: bool = False
    """Another release takes the value."""
    adds: bool = False
    """A build that knows more words may take it."""


def convert(flag: Flag, text: str, table: Table, era: Era) -> Any:
    """The value of a flag, None for "not set" or "work it out", or `BadValue`."""
    if flag.nullable and text in ("", "None"):
        return None
    if len(text) > MOST_DIGITS and flag.kind in ("int", "float", "size", "length"):
        return BadValue(f"invalid {flag.kind} value: {text[:20]!r}...")
    if flag.kind in JSON_KINDS:
        return _json(text, must_be_object=flag.kind == "object" and era.low >= table.objects_since)
    value = _READERS.get(_kind_then(flag, text, table, era), str)(text)
    return value if isinstance(value, BadValue) else _chosen(flag, value, table, era)


def _kind_then(flag: Flag, text: str, table: Table, era: Era) -> str:
    """The kind of a flag in that release: sizes were plain numbers once, and `auto` is younger still."""
    if flag.kind not in ("size", "length") or era.high >= table.auto_length_since:
        return flag.kind
    is_automatic = text.strip().lower() == "auto"
    return "int" if era.high < table.human_sizes_since or is_automatic else flag.kind


def size(text: str) -> int:
    """32k -> 32000, 32K -> 32768, 25.6k -> 25600. Raises ValueError where vLLM does."""
    text = text.strip()
    match = _SIZE.fullmatch(text)
    if match is None:
        return int(text)
    number, suffix = match.groups()
    return int(number) * BINARY[suffix] if suffix in BINARY else int(float(number) * THOUSANDS[suffix])


def length(text: str) -> int | None:
    """A size, or None for -1 and auto: what the memory holds."""
    return None if text.strip().lower() in ("-1", "auto") else size(text)


def _finite(text: str) -> float:
    """A float that sums can be done with: nan and inf pass argparse, and the engine's own checks refuse them."""
    value = float(text)
    if value - value != 0:
        raise ValueError
    return value


def _reader(function: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return function(text)
        except (ValueError, OverflowError):
            return BadValue(f"invalid {name} value: {text!r}")

    return read


_READERS: dict[str, Callable[[str], Any]] = {
    "int": _reader(int, "int"),
    "float": _reader(_finite, "float"),
    "size": _reader(size, "human_readable_int"),
    "length": _reader(length, "human_readable_int_or_auto"),
}


def _chosen(flag: Flag, value: Any, table: Table, era: Era) -> Any:
    """A value of a closed list, where the flag has one in every release that the version may be."""
    lists = [
        values
        for since, until, values in flag.row.get("choices", ())
        if table.index(since, 0) <= era.high and era.low <= table.index(until, table.last)
    ]
    if not era.complete or not lists or any(value in values for values in lists):
        return value
    names = ", ".join(repr(value) for value in lists[-1])
    ranges = flag.row["choices"]
    since = min(table.index(first, 0) for first, _, _ in ranges)
    before = since > table.index(flag.row.get("since"), 0)  # what the releases before took is not known
    of_release = before or any(value in values for _, _, values in ranges)
    return BadValue(f"invalid choice: {value!r} (choose from {names})", value, of_release, adds=True)


def _json(text: str, *, must_be_object: bool) -> Any:
    pieces = _JSON_TEXT.split(text)
    pieces[::2] = [_JSON_SIZE.sub(lambda match: _sized(match[0]), piece) for piece in pieces[::2]]
    try:
        value = load_json("".join(pieces))
    except ValueError:
        return BadValue(f"{text!r} is no JSON", meant=text)
    if must_be_object and not isinstance(value, dict):
        return BadValue(f"{text!r} is no JSON object", meant=value)
    return value


def load_json(text: str) -> Any:
    """JSON without NaN and Infinity, and of a depth that whoever prints it can walk. Raises ValueError."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_JSON_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise ValueError("nested too deeply")
    return json.loads(text, parse_constant=_no_number)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _sized(text: str) -> str:
    try:
        return str(size(text))
    except ValueError:
        return text


def bad_keys(flag: Flag, value: Any, table: Table, era: Era) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the engine says of keys of a JSON value that it does not know or not with that word, and what may be meant.

    Only for the release whose keys are recorded.
    """
    keys = flag.row.get("keys")
    if keys is None or not isinstance(value, dict) or not era.low == era.high == table.index(keys["since"], -1):
        return
    from difflib import get_close_matches  # few commands have such a value

    known: dict[str, list[Any]] = keys["names"]
    inside = {name.partition(".")[0] for name in known if "." in name}
    for path, found in _paths(value, inside):
        if path not in known:
            yield f"{path}: unexpected key", tuple(get_close_matches(path, known, n=1, cutoff=0.8))
        elif known[path] and isinstance(found, str) and found not in known[path]:
            yield (
                f"{path}: {found!r} is none of {_some(known[path])}",
                tuple(get_close_matches(found, map(str, known[path]), n=1)),
            )


MOST_WORDS = 10


def _some(words: list[Any]) -> str:
    more = len(words) - MOST_WORDS
    listed = ", ".join(map(repr, words[:MOST_WORDS]))
    return f"{listed} and {more} more" if more > 0 else listed


def _paths(value: dict[str, Any], inside: set[str]) -> Iterator[tuple[str, Any]]:
    """The keys of an object and of those inside it whose keys are recorded too."""
    for key, found in value.items():
        yield str(key), found
        if key in inside and isinstance(found, dict):
            yield from ((f"{key}.{inner}", part) for inner, part in found.items())
