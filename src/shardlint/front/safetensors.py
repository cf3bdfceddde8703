"""What the headers of a checkpoint's safetensors files say: bytes and elements, by file and by dtype.

A header is eight bytes of length (little-endian), then JSON: tensor -> dtype, shape and the place of its bytes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from shardlint.facts.readers import INDEX_FILE
from shardlint.findings.records import NamedTuple

SUFFIX = ".safetensors"
LENGTH_BYTES = 8
MOST_HEADER_BYTES = 32 * 1024 * 1024  # the format's own limit is 100 MB; the largest header met has some 2 MB
MOST_BYTES = 2**50  # of one file
MOST_FILES = 1024
STEMS = ("model", "consolidated")
"""Names of a checkpoint's files, the ones that engines load first; some repositories hold both, which is one model."""

_PART = re.compile(r"([\w.-]{1,100})-(\d{5,6})-of-(\d{5,6})", re.ASCII)
_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)
_DTYPE = re.compile(r"[A-Z0-9_]{1,16}")


class Size(NamedTuple):
    """Bytes and elements of the tensors of one dtype in one file."""

    bytes: int
    elements: int


def weight_files(names: Iterable[str]) -> list[str]:
    """The files, among all of a repository's, that make its checkpoint; none where that cannot be told."""
    names = set(names)
    whole = {name.removesuffix(SUFFIX): [name] for name in names if _is_whole(name)}
    parts = _complete_parts(names)
    for stem in STEMS:
        for kind in (parts, whole) if INDEX_FILE in names else (whole, parts):
            if stem in kind:
                return kind[stem]
    others = [*parts.values(), *whole.values()]
    return others[0] if len(others) == 1 else []


def _is_whole(name: str) -> bool:
    stem = name.removesuffix(SUFFIX)
    return stem != name and bool(_NAME.fullmatch(name)) and not _PART.fullmatch(stem)


def _complete_parts(names: Iterable[str]) -> dict[str, list[str]]:
    """Numbered files of which none is missing, by their common beginning."""
    groups: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for name in names:
        if name.endswith(SUFFIX) and (part := _PART.fullmatch(name.removesuffix(SUFFIX))):
            groups[part[1], int(part[3])][int(part[2])] = name
    return {
        stem: [files[number] for number in sorted(files)]
        for (stem, count), files in sorted(groups.items())
        if count <= MOST_FILES and sorted(files) == list(range(1, count + 1))
    }


def header_bytes(start: bytes) -> int:
    """How many bytes of a file its header takes, the length included. Raises ValueError for what is no such file."""
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if len(start) < LENGTH_BYTES or not 2 <= length <= MOST_HEADER_BYTES:
        raise ValueError("no length of a header")
    return LENGTH_BYTES + length


def sizes_in(header: bytes) -> dict[str, Size]:
    """The sizes by dtype that a whole header states. Raises ValueError where it makes no sense."""
    try:
        tensors = json.loads(header[LENGTH_BYTES:])
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(tensors, dict):
        raise ValueError("no JSON object")
    sizes: dict[str, Size] = {}
    for name, tensor in tensors.items():
        if name != "__metadata__":
            dtype, more = _size_of(tensor)
            so_far = sizes.get(dtype, Size(0, 0))
            sizes[dtype] = Size(so_far.bytes + more.bytes, so_far.elements + more.elements)
    return sizes


def _size_of(tensor: Any) -> tuple[str, Size]:
    match tensor:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [start, end]}:
            counts = (*shape, start, end)
            sound = len(shape) <= 16 and all(type(count) is int and 0 <= count <= MOST_BYTES for count in counts)
            if sound and start <= end and _DTYPE.fullmatch(dtype):
                return dtype, Size(end - start, prod(shape))
    raise ValueError("a tensor without dtype, shape and place")


def summary(files: Mapping[str, Mapping[str, Size]]) -> dict[str, Any]:
    """The sizes of a checkpoint by file and dtype, as they are kept: the total first, all in a steady order."""
    dtypes: dict[str, Size] = {}
    for sizes in files.values():
        for dtype, size in sizes.items():
            so_far = dtypes.get(dtype, Size(0, 0))
            dtypes[dtype] = Size(so_far.bytes + size.bytes, so_far.elements + size.elements)
    return {
        "total_bytes": sum(size.bytes for size in dtypes.values()),
        "total_elements": sum(size.elements for size in dtypes.values()),
        "dtypes": {dtype: {"bytes": size.bytes, "elements": size.elements} for dtype, size in sorted(dtypes.items())},
        "files": {name: sum(size.bytes for size in files[name].values()) for name in sorted(files)},
    }
