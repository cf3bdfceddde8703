"""Data files of one JSON object a line, each beginning with its key: one line is found and parsed, not the file.

A line is `{"id": "KEY", ...}`; the first field is always `id`, so that a line can be found by its first bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

_DATA = os.path.join(os.path.dirname(__file__), "data")  # noqa: PTH118, PTH120 - pathlib costs more than the look-up


@cache
def table(name: str) -> bytes:
    """The bytes of a data file, read once."""
    with open(os.path.join(_DATA, name), "rb") as file:  # noqa: PTH118, PTH123
        return file.read()


@cache
def folded_table(name: str) -> bytes:
    """The bytes of a data file in lower case, at the same offsets."""
    return table(name).lower()


def row_by_key(name: str, key: str) -> dict[str, Any] | None:
    """The row with that id, spelled exactly so, or None."""
    at = _line_start(table(name), _opening(key))
    return None if at < 0 else _row_at(table(name), at)


def row_by_folded_key(name: str, key: str) -> dict[str, Any] | None:
    """The row with that id, without regard to upper and lower case (ASCII), or None."""
    at = _line_start(folded_table(name), _opening(key).lower())
    return None if at < 0 else _row_at(table(name), at)


def rows(name: str) -> Iterator[dict[str, Any]]:
    """All rows, for small tables and for tests."""
    return map(json.loads, table(name).splitlines())


def keys_ending(name: str, ending: str) -> Iterator[str]:
    """The ids that end so, without regard to case, found without parsing a row."""
    data, wanted = folded_table(name), json.dumps(ending).encode().lower()[1:] + b","
    at = data.find(wanted)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        key = table(name)[start : at + len(wanted) - 1]
        if key.count(b'"') == 4:  # {"id": "KEY" and nothing else: the match is in the first field
            yield json.loads(key + b"}")["id"]
        at = data.find(wanted, at + 1)


def _opening(key: str) -> bytes:
    return b'{"id": ' + json.dumps(key).encode() + b","


def _line_start(data: bytes, opening: bytes) -> int:
    if data.startswith(opening):
        return 0
    at = data.find(b"\n" + opening)
    return at + 1 if at >= 0 else -1


def _row_at(data: bytes, start: int) -> dict[str, Any]:
    end = data.find(b"\n", start)
    row: dict[str, Any] = json.loads(data[start : end if end >= 0 else None])
    return row
