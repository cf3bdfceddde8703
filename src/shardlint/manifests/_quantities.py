"""Amounts of memory as Kubernetes and container runtimes spell them."""

from __future__ import annotations

import re

from shardlint.findings import Maybe, Unknown
from shardlint.findings.patterns import Pattern

_KUBERNETES = Pattern(r"(\d{1,30}(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2}))?(m|[kKMGTPE]i?)?")
_DOCKER = Pattern(r"(\d{1,30}(?:\.\d*)?)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_LETTERS = "kmgtp"


def kubernetes(word: Maybe[str]) -> Maybe[int]:
    """Bytes of `48Gi`, `5000Mi`, `64G`, `1e9`."""
    if isinstance(word, Unknown):
        return word
    found = _KUBERNETES.fullmatch(word.value.strip())
    if found is None:
        return Unknown(f"{word.value!r} is no amount of memory", word.span, word.spelled)
    number = float(found[1]) * 10.0 ** int(found[2] or 0)
    return word.with_value(int(number * _kubernetes_unit(found[3] or "")))


def _kubernetes_unit(letters: str) -> float:
    if letters in ("", "m"):
        return 1.0 if not letters else 0.001
    power = "kmgtpe".index(letters[0].lower()) + 1
    return float((1024 if letters.endswith("i") else 1000) ** power)


def docker(word: Maybe[str]) -> Maybe[int]:
    """Bytes of `8g`, `16gb`, `512m`, `1073741824`: Docker, Podman and Compose count by 1024."""
    if isinstance(word, Unknown):
        return word
    found = _DOCKER.fullmatch(word.value.strip())
    if found is None:
        return Unknown(f"{word.value!r} is no amount of memory", word.span, word.spelled)
    power = _LETTERS.index(found[2].lower()) + 1 if found[2] else 0
    return word.with_value(int(float(found[1]) * 1024**power))
