"""Cards as platforms that rent machines are asked for them: `H100:8`, `{L4: 1, A10G: 1}`, `A100:80GB:2`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _devices
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

VENDORS = frozenset({"nvidia", "amd", "google", "tpu", "intel", "tenstorrent"})
_MEMORY = re.compile(r"(?i)[\d.]*(?:gb|mb|tb)?\.\.[\d.]*(?:gb|mb|tb)?|[\d.]+(?:gb|mb|tb)\+?")
_RANGE = re.compile(r"\d*\.\.\d*|\d+\+")
_ANY_NUMBER = "a range is allowed"
_TPU = re.compile(r"(?i)tpu-")


class Cards(NamedTuple):
    """The card by its name, or the names of several that are as good, and how many of it one host has."""

    gpu: Maybe[str] | None = None
    per_host: Maybe[int] | None = None


def either(alternatives: list[Cards]) -> Cards:
    """What alternatives say together: all names with `|` between them; the number if it is the same."""
    if len(alternatives) < 2:
        return alternatives[0] if alternatives else Cards()
    first = alternatives[0]
    names = [one.gpu.value for one in alternatives if isinstance(one.gpu, Located)]
    gpu = first.gpu
    if isinstance(gpu, Located) and len(names) == len(alternatives):
        gpu = gpu.with_value("|".join(dict.fromkeys(names)))
    counts = {one.per_host.value if isinstance(one.per_host, Located) else None for one in alternatives}
    count = first.per_host
    if len(counts) > 1 and count is not None:
        count = Unknown("the alternatives have different numbers of cards", count.span, count.spelled, "--hardware")
    return Cards(gpu, count)


# SkyPilot, Truss


def counted(node: Node | None) -> list[Cards]:
    """Every alternative of `H100:8`, `{H100: 8, H200: 8}`, `{L4:1, A10G:1}`, `[H100:8, H200:8]`."""
    if isinstance(node, Scalar) and not node.is_null:
        return [_counted(value_of(node))]
    if isinstance(node, Mapping):
        return [_of_entry(key, value) for key, value in node.items()]
    return [one for entry in node for one in counted(entry)] if isinstance(node, Sequence) else []


def _of_entry(key: Scalar, value: Node) -> Cards:
    name = _counted(value_of(key))
    return Cards(name.gpu, _number(value_of(value))) if isinstance(value, Scalar) and not value.is_null else name


def _counted(word: Maybe[str]) -> Cards:
    if isinstance(word, Unknown):
        return Cards(word, word)
    name, colon, count = word.value.strip().partition(":")
    gpu = word.with_value(name.strip())
    if _TPU.match(name):
        return Cards(
            gpu, Unknown("how many chips of the slice a host has is not in this file", word.span, word.spelled)
        )
    return Cards(gpu, _number(word.with_value(count)) if colon else word.with_value(1))


def _number(word: Maybe[str]) -> Maybe[int]:
    if isinstance(word, Located) and _RANGE.fullmatch(word.value.strip()):
        return Unknown(_ANY_NUMBER, word.span, word.spelled, settle_by="--hardware")
    return _devices.count(word)


# dstack


def specified(node: Node | None) -> Cards:
    """`24GB`, `2`, `H100:8`, `A100:80GB:2`, `nvidia:H100,H200:1..8`, or a mapping of `name`, `memory` and `count`."""
    if isinstance(node, Scalar) and not node.is_null:
        word = value_of(node)
        return Cards(word, word) if isinstance(word, Unknown) else _specified(word)
    return _of_fields(node) if isinstance(node, Mapping) else Cards()


def _specified(word: Located[str]) -> Cards:
    names: list[str] = []
    memory = ""
    count: Maybe[int] = word.with_value(1)
    for part in word.value.strip().split(":"):
        if part.isdigit() or (_RANGE.fullmatch(part) and (names or memory)):
            count = _number(word.with_value(part))
        elif _MEMORY.fullmatch(part):
            memory = part
        elif part.lower() not in VENDORS:
            names += [name.strip() for name in part.split(",") if name.strip()]
    return Cards(_named(word, names, memory), count)


def _of_fields(fields: Mapping) -> Cards:
    written = fields.get("name")
    names = [one.text for one in _scalars(written)]
    memory = fields.get("memory")
    word = value_of(next(_scalars(written))) if names else None
    size = memory.text if isinstance(memory, Scalar) else ""
    gpu = _named(word, names, size) if isinstance(word, Located) else word
    count = fields.get("count")
    if isinstance(count, Scalar) and not count.is_null:
        return Cards(gpu, _number(value_of(count)))
    if isinstance(count, Mapping):
        return Cards(gpu, Unknown(_ANY_NUMBER, count.span, count.spelled, settle_by="--hardware"))
    return Cards(gpu, Located(1, fields.span, "", "default", "one card where no number is written"))


def _scalars(node: Node | None) -> Iterator[Scalar]:
    for entry in node if isinstance(node, Sequence) else (node,):
        if isinstance(entry, Scalar) and not entry.is_null:
            yield entry


def _named(word: Located[str], names: list[str], memory: str) -> Located[str] | None:
    """The names; of one with a size of its memory both, which tell the card."""
    if not names:
        return None
    sized = [f"{name}:{memory}" if re.fullmatch(r"(?i)\d+gb", memory) else name for name in names]
    return word.with_value("|".join(sized))
