"""Long lists of a config, written short in the catalogue: runs of equal items, and names that differ by numbers.

`["full", "full", "full", "sliding"]` is `{"#runs": [["full", 3], ["sliding", 1]]}`; the names of the modules of 61
layers are `{"#names": [["model.layers.#.mlp.gate", "0-60"]]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, product
from typing import Any

from shardlint.findings.patterns import Pattern

RUNS, NAMES, KEYS = "#runs", "#names", "#keys"
SHORTEST = 9
_NUMBER = Pattern(r"(?<=\.)\d+(?=\.|$)")


def pack(value: Any) -> Any:
    """The value with its long lists and dicts written short."""
    if isinstance(value, dict):
        return _packed_keys(value) if len(value) >= SHORTEST * 3 else {key: pack(item) for key, item in value.items()}
    if not isinstance(value, list) or len(value) < SHORTEST:
        return [pack(item) for item in value] if isinstance(value, list) else value
    if all(isinstance(item, str) for item in value) and len(set(value)) == len(value):
        return {NAMES: _patterns(value)}
    runs = [[pack(item), len(list(group))] for item, group in groupby(value)]
    return {RUNS: runs} if len(runs) * 2 < len(value) else [pack(item) for item in value]


def unpack(value: Any) -> Any:
    """The value as it was; names come in the order of their patterns."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if RUNS in value:
        return [item for packed, count in value[RUNS] for item in [unpack(packed)] * count]
    if NAMES in value:
        return list(_names(value[NAMES]))
    if KEYS in value:
        return {
            name: item for packed, patterns in value[KEYS] for item in [unpack(packed)] for name in _names(patterns)
        }
    return {key: unpack(item) for key, item in value.items()}


def _packed_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """A dict of many keys with few different values (what each of 20,000 layers is quantised to)."""
    holders: dict[str, tuple[Any, list[str]]] = {}
    for key, item in value.items():
        holders.setdefault(repr(item), (item, []))[1].append(key)
    if len(holders) * 4 > len(value):
        return {key: pack(item) for key, item in value.items()}
    return {KEYS: [[pack(item), _patterns(names)] for item, names in holders.values()]}


def _patterns(names: Iterable[str]) -> list[list[str]]:
    """Names that differ by numbers only, as a pattern and the ranges of each number, the last number first."""
    grouped: dict[tuple[str, ...], list[int]] = {(name,): [] for name in names if "#" not in name}
    while True:
        wider: dict[tuple[str, ...], list[int]] = {}
        for pattern, *ranges in grouped:
            *_, last = [None, *_NUMBER.finditer(pattern)]
            number = [int(last[0])] if last else []
            short = f"{pattern[: last.start()]}#{pattern[last.end() :]}" if last else pattern
            wider.setdefault((short, *ranges, *([""] if last else [])), []).extend(number)
        grouped = {(*key[:-1], _ranges(numbers)) if numbers else key: [] for key, numbers in wider.items()}
        if not any(wider.values()):
            return [[pattern, *reversed(ranges)] for pattern, *ranges in grouped]


def _ranges(numbers: Iterable[int]) -> str:
    parts = []
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        parts.append(f"{members[0]}-{members[-1]}" if len(members) > 1 else f"{members[0]}")
    return ",".join(parts)


def _names(patterns: Iterable[list[str]]) -> Iterable[str]:
    for pattern, *ranges in patterns:
        pieces = pattern.split("#")
        for numbers in product(*(list(_numbers(text)) for text in ranges)):
            yield pieces[0] + "".join(f"{number}{piece}" for number, piece in zip(numbers, pieces[1:], strict=True))


def _numbers(ranges: str) -> Iterable[int]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
