"""Which cards of its host a process can use, by the names that the host has for them.

Cards that are only counted are the first ones: the container runtime hands out the indexes from 0 up, and so does CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests._devices import ALL_OF_HOST, NOTHING, RUNTIME_DEVICES, VISIBLE_DEVICES

Names = tuple[str, ...]

_DEVICE = Pattern(r"(?:(?:nvidia|amd)\.com/gpu=|/dev/nvidia(?=\d))([\w-]+)")

EVERY: Names = tuple(map(str, range(64)))
"""All cards of a host, of which no engine uses more on one host."""


def of_list(word: Maybe[str] | None) -> Names | None:
    """The entries of `0,1`; None where they are not known."""
    if not isinstance(word, Located):
        return None
    text = word.value.strip().strip("\"'")
    if text.lower() in ("all", ""):
        return EVERY
    entries = (entry.strip().rpartition("=")[2] for entry in text.split(",") if entry.strip())
    return () if text in NOTHING else tuple(dict.fromkeys(entries))


def of_count(count: Maybe[int] | None) -> Names | None:
    """The first ones; all of the host where it is given all."""
    if isinstance(count, Unknown):
        return EVERY if count.reason == ALL_OF_HOST else None
    return None if count is None else EVERY[: count.value]


def of_gpus_option(word: Maybe[str]) -> Names | None:
    """The value of `docker run --gpus`: `all`, `2`, `device=0,1`, `"device=0,1",capabilities=utility`."""
    if not isinstance(word, Located):
        return None
    listed = re.search(r"device=([^\"']*)", word.value)
    if listed is not None:
        return of_list(word.with_value(listed[1].split(",capabilities")[0]))
    counted = re.fullmatch(r"(?:count=)?(\d{1,6})", word.value.strip())
    return EVERY[: int(counted[1])] if counted else EVERY if word.value.strip() in ("all", "-1") else None


def of_devices(words: Iterable[Maybe[str]]) -> Names | None:
    """The entries of `devices` or `--device` that name cards by CDI (`nvidia.com/gpu=0`) or as `/dev/nvidia0`."""
    names: list[str] = []
    for word in words:
        found = _DEVICE.match(word.value) if isinstance(word, Located) else None
        if found is not None:
            names += EVERY if found[1] == "all" else (found[1],)
    return tuple(dict.fromkeys(names)) or None


def from_runtime(given: Names | None, env: Mapping[str, Maybe[str]]) -> Names | None:
    """What the container runtime's own variables make of a request for cards."""
    word = next((env[name] for name in RUNTIME_DEVICES if name in env), None)
    return given if word is None else of_list(word)


def usable(given: Names | None, env: Mapping[str, Maybe[str]]) -> Names | None:
    """What the environment leaves of them: indexes count among those that the process was given."""
    for name in VISIBLE_DEVICES:
        if name in env:
            visible = of_list(env[name])
            given = visible if given is None or visible is None else _among(given, visible)
    return given


def _among(given: Names, visible: Names) -> Names | None:
    if visible == EVERY:
        return given
    chosen = [given[int(one)] if one.isdigit() and int(one) < len(given) else one for one in visible]
    return None if any(one.isdigit() and one not in given for one in chosen) else tuple(chosen)
