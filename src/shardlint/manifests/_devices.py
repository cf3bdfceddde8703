"""How many cards a process can use: what its environment leaves visible of what its container was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.findings import Located, Maybe, Unknown

VISIBLE_DEVICES = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
"""Read by the process itself: they narrow what the container has."""
RUNTIME_DEVICES = ("NVIDIA_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES")
"""Read by the container runtime: they say what the container gets."""
ALL_OF_HOST = "all cards of the host, whose number is not in this file"
_EVERYTHING = ("all", "")
MOST_DIGITS = 6
"""Of a number of cards or copies that can be meant."""
NOTHING = ("none", "void", "-1", "NoDevFiles")


def count(word: Maybe[str]) -> Maybe[int]:
    """A number as written: `8`, `"8"`; Unknown where the text is none."""
    if isinstance(word, Unknown):
        return word
    text = word.value.strip()
    if text.isdecimal() and len(text) <= MOST_DIGITS:
        return word.with_value(int(text))
    return Unknown(f"{text!r} is not a whole number", word.span, word.spelled)


def listed(word: Maybe[str]) -> Maybe[int]:
    """The length of a list of indexes or UUIDs: `0,1` -> 2; `all` is Unknown."""
    if isinstance(word, Unknown):
        return word
    text = word.value.strip().strip("\"'")
    if text.lower() in _EVERYTHING:
        return Unknown(ALL_OF_HOST, word.span, word.spelled, settle_by="--hardware")
    if text in NOTHING:
        return word.with_value(0)
    entries = {entry.strip() for entry in text.split(",") if entry.strip()}
    return Located(len(entries), word.span, word.spelled, "derived", f"the entries of {text}")


def usable(given: Maybe[int] | None, env: Mapping[str, Maybe[str]]) -> Maybe[int] | None:
    """What the environment leaves of the cards that a container was given; None where neither says anything."""
    here = given
    for name in VISIBLE_DEVICES:
        if (word := env.get(name)) is not None and not _unset(word):
            here = fewer(here, listed(word))
    return here


def from_runtime(given: Maybe[int] | None, env: Mapping[str, Maybe[str]]) -> Maybe[int] | None:
    """What the container runtime's own variables make of a request for cards (Compose, `docker run`)."""
    for name in RUNTIME_DEVICES:
        if (word := env.get(name)) is not None and not _unset(word):
            return fewer(given, listed(word))
    return given


def fewer(given: Maybe[int] | None, visible: Maybe[int]) -> Maybe[int]:
    """The smaller of two statements; "all" gives way to a number."""
    if isinstance(given, Located) and isinstance(visible, Located):
        return min(given, visible, key=_value)
    if isinstance(given, Located) and isinstance(visible, Unknown):
        return given if visible.reason == ALL_OF_HOST else visible
    return visible


def added(parts: list[Maybe[int]]) -> Maybe[int] | None:
    """The sum of several requests of one container; None where there is none."""
    for part in parts:
        if isinstance(part, Unknown):
            return part
    numbers = [part for part in parts if isinstance(part, Located)]
    if len(numbers) < 2:
        return numbers[0] if numbers else None
    terms = " + ".join(str(part.value) for part in numbers)
    return Located(sum(part.value for part in numbers), numbers[0].span, numbers[0].spelled, "derived", terms)


def _unset(word: Maybe[str]) -> bool:
    return isinstance(word, Located) and not word.value.strip()


def _value(number: Located[Any]) -> int:
    return int(number.value)
