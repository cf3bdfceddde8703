"""What Compose and `docker run` have in common: the ways to hand cards to a container."""

from __future__ import annotations

import re

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _devices

_CDI = re.compile(r"(?:nvidia|amd)\.com/gpu=(.+)")
_NODE = re.compile(r"/dev/(?:nvidia|dri/renderD|accel/accel|davinci|vfio/)\d+(?::.*)?")
_WHOLE_HOST = re.compile(r"/dev/(?:kfd|dri)/?(?::.*)?")


def gpus(word: Maybe[str]) -> Maybe[int]:
    """The value of `--gpus`: `all`, `2`, `device=0,1`, `"device=0,1",capabilities=utility`, `count=2`."""
    if isinstance(word, Unknown):
        return word
    text = word.value.strip()
    if text in ("all", "-1"):
        return all_of_host(word)
    if (listed := re.search(r'"?device=([^"]*)', text)) is not None:
        ids = listed.group(1) if '"' in text else listed.group(1).split(",capabilities")[0]
        return _devices.listed(word.with_value(ids.replace(" ", "")))
    if (counted := re.search(r"count=(\w+)", text)) is not None:
        return gpus(word.with_value(counted.group(1)))
    return _devices.count(word)


def device(word: Maybe[str]) -> Maybe[int] | None:
    """One entry of `devices` or `--device`; None where it is no card."""
    if isinstance(word, Unknown):
        return None
    if (cdi := _CDI.fullmatch(word.value)) is not None:
        return _devices.listed(word.with_value(cdi.group(1)))
    if _WHOLE_HOST.fullmatch(word.value):
        return all_of_host(word)
    return word.with_value(1) if _NODE.fullmatch(word.value) else None


def devices(words: list[Maybe[str]]) -> Maybe[int] | None:
    """All entries together; single nodes beside a whole-host entry name the cards (`/dev/kfd` and `renderD128`)."""
    found = [count for word in words if (count := device(word)) is not None]
    numbers: list[Maybe[int]] = [count for count in found if isinstance(count, Located)]
    return _devices.added(numbers or found)


def all_of_host(word: Located[str]) -> Unknown:
    return Unknown(_devices.ALL_OF_HOST, word.span, word.spelled, settle_by="--hardware")
