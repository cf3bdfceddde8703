"""`--config FILE`: the keys of a YAML file as words of the command line, as vLLM 0.33.0 does it.

`FlexibleArgumentParser` (`vllm/utils/argparse_utils.py`) looks for the word `--config`, so `--config=FILE` names no
file to it; it puts the words of the file behind the model and before all others, so that the command line wins.
SGLang's `ConfigArgumentMerger` does the same in what matters here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from shardlint.deployment import ConfigEntry, FlagProblem, Word
from shardlint.findings import Located, Unknown

FlagsIn = Callable[[Located[str]], Sequence[ConfigEntry] | Unknown]
"""The keys of the file that a word names, or why they are not known."""

SUFFIXES = ("yaml", "yml")


def not_read(path: Located[str]) -> Unknown:
    """The `FlagsIn` of those who have no files."""
    return Unknown("it was not looked for", path.span, path.spelled)


def in_two(words: Iterable[Word], flags: Iterable[str]) -> Iterator[Word]:
    """Words of which those that name a file (`--the_config=FILE`) are in two, the flag as it is listed.

    For engines whose own parser takes the flag; vLLM and SGLang look for it themselves, as a word of its own.
    """
    listed = frozenset(flags)
    for word in words:
        key, equals, value = word.value.partition("=") if isinstance(word, Located) else ("", "", "")
        flag = key.replace("_", "-")
        if not isinstance(word, Located) or flag not in listed:
            yield word
            continue
        yield word.with_value(flag)
        if equals:
            yield word.with_value(value)


class Files:
    """The files of flags that one command names, taken out of its words."""

    def __init__(self, words: Sequence[Word], flags: Iterable[str], flags_in: FlagsIn) -> None:
        self.problems: list[FlagProblem] = []
        self.open_words: list[Unknown] = []
        self.entries: list[ConfigEntry] = []
        self.words = list(words)
        self._flags_in = flags_in
        for flag in flags:
            self._take(flag)

    def _take(self, flag: str) -> None:
        places = [place for place, word in enumerate(self.words) if isinstance(word, Located) and word.value == flag]
        for count, place in enumerate(reversed(places), 1):
            named = self.words[place + 1] if place + 1 < len(self.words) else None
            at = self.words[place]
            del self.words[place : place + 2]
            if count < len(places):
                self._refuse(at, "More than one config file specified!")
            elif named is None:
                self._refuse(at, "No config file specified! Please check your command-line arguments.")
            else:
                self._read(flag, named)

    def _read(self, flag: str, named: Word) -> None:
        if isinstance(named, Unknown):
            self.open_words.append(_not_read(flag, named, named))
            return
        suffix = named.value.rpartition(".")[2]
        if suffix not in SUFFIXES:
            self._refuse(named, f"Config file must be of a yaml/yml type. {suffix} supplied")
            return
        found = self._flags_in(named)
        if isinstance(found, Unknown):
            self.open_words.append(_not_read(flag, named, found))
        else:
            self.entries.extend(found)

    def _refuse(self, at: Word, message: str) -> None:
        place = at if isinstance(at, Located) else Located(at.spelled, at.span, at.spelled)
        self.problems.append(FlagProblem(place, message))


def _not_read(flag: str, named: Word, why: Unknown) -> Unknown:
    name = named.value if isinstance(named, Located) else named.spelled
    return Unknown(f"the flags in {flag} {name} were not read: {why.reason}", named.span, named.spelled, why.settle_by)


def words_of(entries: Iterable[ConfigEntry], negates: Callable[[str], bool]) -> Iterator[Word]:
    """The words that stand for the keys of a file. `negates`: whether the parser knows a spelling (`--no-x`)."""
    for key, value in entries:
        spelled = key.spelled or key.value
        flag = Located("--" + key.value, key.span, spelled if spelled.endswith("=") else f"{spelled}:")
        if isinstance(value, Unknown):
            yield Unknown(value.reason, value.span, f"{flag.value}={value.spelled}", value.settle_by)
        elif isinstance(value.value, bool):
            if value.value:
                yield flag
            elif negates("--no-" + key.value):
                yield flag.with_value("--no-" + key.value)
        elif not isinstance(value.value, list) or value.value:
            yield flag
            yield from _values(value)


def _values(value: Located[Any]) -> Iterator[Word]:
    if isinstance(value.value, list):
        yield from (value.with_value(str(item)) for item in value.value)
    elif isinstance(value.value, dict):
        yield _as_json(value)
    else:
        yield value.with_value(str(value.value))


def _as_json(value: Located[Any]) -> Word:
    try:
        return value.with_value(json.dumps(value.value))
    except (TypeError, ValueError) as error:
        return Unknown(f"it cannot be written as JSON: {error}", value.span, value.spelled)
