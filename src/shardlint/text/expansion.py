"""`$(NAME)` in the command and environment of a Kubernetes container, expanded before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from shardlint.findings import Located, Maybe, Unknown

_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


def expand_kubernetes(word: Located[str], env: Mapping[str, Maybe[str]]) -> Maybe[str]:
    """The word with each `$(NAME)` replaced; `$$` is a dollar sign, and a name that is not set stays as written.

    A word that is one reference and nothing else stands where the variable's value was written.
    """
    if "$" not in word.value:
        return word
    whole = _REFERENCE.fullmatch(word.value)
    if whole is not None and whole[1] in env:
        value = env[whole[1]]
        return value if isinstance(value, Located) else _unknown(value, word)
    unknown = [env[name] for name in _names(word.value) if isinstance(env.get(name), Unknown)]
    if unknown:
        return _unknown(unknown[0], word)
    return replace(word, value=_REFERENCE.sub(lambda found: _replacement(found, env), word.value))


def _names(text: str) -> list[str]:
    return [found[1] for found in _REFERENCE.finditer(text) if found[1]]


def _replacement(found: re.Match[str], env: Mapping[str, Maybe[str]]) -> str:
    if found[1] is None:
        return "$"
    value = env.get(found[1])
    return value.value if isinstance(value, Located) else found.group()


def _unknown(value: Maybe[str], word: Located[str]) -> Unknown:
    assert isinstance(value, Unknown)
    return Unknown(value.reason, word.span, word.spelled, value.settle_by)
