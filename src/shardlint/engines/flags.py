"""A command line read as argparse reads it, with the place of every value kept.

One reader serves all engines; what differs between them (spellings, kinds, releases) is in their tables.  It follows
vLLM's `FlexibleArgumentParser` (`vllm/utils/argparse_utils.py`): underscores for dashes, unambiguous abbreviations,
`--flag.key value` for a part of a JSON value.  It goes on where the engine would stop, so that one slip does not hide
the rest: what the engine would refuse is a `FlagProblem`, and the value that was meant is kept where it is plain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.deployment import FlagProblem, Word
from shardlint.engines.tables import Era, Flag, Found, Option, Table
from shardlint.engines.values import DEEPEST, JSON_KINDS, BadValue, bad_keys, convert, load_json
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.patterns import Pattern

NO_WORDS = ("bool", "switch")
BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}

QUOTES = "\"'"

_NEGATIVE_NUMBER = Pattern(r"-\d+|-\d*\.\d+")
_UNKNOWN_WITH_KEY = Pattern(r"[\"']?(?P<key>--?[A-Za-z][\w.-]*)(?:=|[\"']?\Z)")
_MANY_WORDS = Pattern(r"\"?\$(?:[@*]|\{[@*][^}]*\}|\{\w+\[[@*]\][^}]*\})\"?")
_NAMED_FOR_FLAGS = Pattern(r"ARG|FLAG|OPT|EXTRA|PARAM|toYaml", re.IGNORECASE)
_NAMED_FOR_MODELS = Pattern(r"MODEL|CHECKPOINT|CKPT|WEIGHTS|/", re.IGNORECASE)
_FILLED_IN = Pattern(r"\$\{\w+\}")
"""What envsubst fills in, inside single quotes too, where a shell would not."""
_QUOTED = Pattern(r"([\"']).*\1", re.DOTALL)


MOST_COMPARED = 100
"""Faults of one command up to which a strange flag is compared with every known one: more are no slips of a hand."""


class Reading:
    """What a command line says. `values` is by the flags' canonical names, the last one written wins."""

    def __init__(self) -> None:
        self.values: dict[str, Maybe[Any]] = {}
        self.flags: dict[str, Flag] = {}
        self.positionals: list[Word] = []
        self.problems: list[FlagProblem] = []
        self.open_words: list[Unknown] = []


def read(words: Sequence[Word], table: Table, era: Era, *, takes_positional: bool) -> Reading:
    """Read the words after the command against the flags of one release.

    `takes_positional`: whether one word may stand alone (the model of `vllm serve MODEL`).
    """
    reader = _Reader(words, table, era, takes_positional)
    while reader.place < len(words):
        reader.step()
    reader.merge_parts()
    reader.look_into_objects()
    return reader.reading


def _has_blanks(key: str) -> bool:
    return key.split() != [key]


class _Reader:
    def __init__(self, words: Sequence[Word], table: Table, era: Era, takes_positional: bool) -> None:
        self.words = words
        self.table = table
        self.era = era
        self.takes_positional = takes_positional
        self.place = 0
        self.reading = Reading()
        self.parts: dict[str, tuple[Located[str], dict[str, Any]]] = {}
        self.only_positionals = False

    def step(self) -> None:
        """Read one word, and the words that belong to it."""
        word = self.words[self.place]
        self.place += 1
        if isinstance(word, Unknown):
            self.unknown_word(word)
        elif word.value == "--" and not self.only_positionals:
            self.only_positionals = True
        elif self.only_positionals or not self.is_option(word):
            self.positional(word)
        else:
            self.option(word)

    # Words without a flag

    def positional(self, word: Word) -> None:
        """A word that stands alone: the model once, anything more is refused."""
        if self.takes_positional and not self.reading.positionals and not _is_boolean(word):
            self.reading.positionals.append(word)
        elif isinstance(word, Unknown):
            self.reading.open_words.append(word)
        else:
            self.refuse(word, f"unrecognized arguments: {word.value}")

    def unknown_word(self, word: Unknown) -> None:
        """A word that the file does not tell: one value, one flag (or whether it is there), or any number of flags."""
        if keyed := _UNKNOWN_WITH_KEY.match(word.spelled):
            self.unknown_value(keyed["key"], word)
        elif self.takes_positional and not self.reading.positionals and self.may_be_model(word):
            self.positional(word)
        else:
            self.reading.open_words.append(word)

    def may_be_model(self, word: Unknown) -> bool:
        if _may_be_flags(word):
            return False
        is_named = _QUOTED.fullmatch(word.spelled) or _NAMED_FOR_MODELS.search(word.spelled)
        return self.place == 1 or is_named is not None

    def unknown_value(self, key: str, word: Unknown) -> None:
        found = self.find(_dashed(key))
        if found.option is not None:
            self.keep(found.option.flag, word)
        elif self.era.complete:
            self.reading.problems.append(_refusal(word, f"unrecognized arguments: {word.spelled}"))

    # Flags

    def is_option(self, word: Located[str]) -> bool:
        """argparse's question whether a word is a flag or a value."""
        text = word.value.lstrip()
        if not text.startswith("-") or text == "-" or _NEGATIVE_NUMBER.fullmatch(text):
            return False
        key = text.partition("=")[0]
        return not _has_blanks(key) or self.find(_dashed(key.split()[0])).option is not None

    def find(self, key: str) -> Found:
        return self.table.find(key, self.era)

    def option(self, word: Located[str]) -> None:
        """A word that begins with a dash."""
        text = word.value.lstrip()
        key, equals, _ = text.partition("=")
        if _has_blanks(key):
            self.glued(word)
            return
        if len(text) < len(word.value):
            self.refuse(word, f"unrecognized arguments: {word.value}")
        value = _after(word, word.value.index("=") + 1) if equals else None
        if "." in key and self.era.high >= self.table.dotted_since:
            self.part(word, key, value)
        else:
            self.known_or_not(word, _dashed(key), value)

    def known_or_not(self, word: Located[str], key: str, value: Located[str] | None) -> None:
        found = self.find(key)
        if found.ambiguous:
            message = f"ambiguous option: {key} could match {', '.join(found.ambiguous)}"
            self.reading.problems.append(FlagProblem(word, message, depends_on_release=found.option is not None))
        if found.option is None:
            self.stuck_or_unknown(word, key, value, found)
            return
        before = self.place
        self.apply(found.option, word, value)
        if not found.accepted and not found.ambiguous:
            self.refuse_unknown(word, before, depends_on_release=True)

    def stuck_or_unknown(self, word: Located[str], key: str, value: Located[str] | None, found: Found) -> None:
        """A one-letter flag with its value stuck to it (`-q8`), or a flag that no release knows."""
        stuck = self.table.exact(word.value[:2], self.era)
        if not key.startswith("--") and stuck is not None and stuck.flag.kind not in NO_WORDS:
            self.apply(stuck, word, _after(word, 2))
            return
        before = self.place
        if value is None and self.place < len(self.words):
            self.skip_value()
        if not found.ambiguous:
            self.refuse_unknown(word, before)

    def skip_value(self) -> None:
        following = self.words[self.place]
        if isinstance(following, Unknown):
            is_value = not (_UNKNOWN_WITH_KEY.match(following.spelled) or _may_be_flags(following))
        else:
            is_value = not self.is_option(following)
        self.place += is_value

    def refuse_unknown(self, word: Located[str], before: int, *, depends_on_release: bool = False) -> None:
        if self.era.complete:
            values = [w.value if isinstance(w, Located) else w.spelled for w in self.words[before : self.place]]
            near: tuple[str, ...] = ()
            if len(self.reading.problems) < MOST_COMPARED:
                near = self.table.near(_dashed(word.value.partition("=")[0]), self.era)
            message = " ".join(["unrecognized arguments:", word.value, *values])
            problem = FlagProblem(word, message, depends_on_release=depends_on_release, near=near, adds=not near)
            self.reading.problems.append(problem)

    def glued(self, word: Located[str]) -> None:
        """One word that holds a flag and its value with a blank between: refused, but plainly meant."""
        self.refuse(word, f"unrecognized arguments: {word.value}")
        key, _, rest = word.value.strip().partition(" ")
        found = self.find(_dashed(key))
        if found.option is not None and rest.strip():
            value = _after(word, word.value.index(key) + len(key) + 1)
            self.apply(found.option, word, value.with_value(value.value.strip()))

    def part(self, word: Located[str], key: str, value: Located[str] | None) -> None:
        """`--flag.key value`: a part of a JSON value, put together at the end."""
        whole, *path = key.removesuffix("+").split(".")
        given = value if value is not None else self.next_value()
        if len(path) > DEEPEST:
            self.refuse(word, f"unrecognized arguments: {key[:80]}...")
        elif isinstance(given, Located):
            parsed = given.value.split(",") if key.endswith("+") else _json_or_text(given.value)
            _, parts = self.parts.setdefault(_dashed(whole), (word, {}))
            _merge(parts, path, parsed)
            self.parts[_dashed(whole)] = (given.respelled(_spelling(word, value, given)), parts)
        elif given is None:
            self.refuse(word, f"argument {key}: expected one argument")
        else:
            self.unknown_value(whole, given)

    def merge_parts(self) -> None:
        """As vLLM does it: the parts become one JSON value at the end of the line, so they override a whole one."""
        for key, (at, parts) in self.parts.items():
            found = self.find(key)
            if found.option is not None:
                self.merged(found.option.flag, at, parts)
            elif self.era.complete:
                self.refuse(at, f"unrecognized arguments: {key} {json.dumps(parts)}")

    def merged(self, flag: Flag, at: Located[str], parts: dict[str, Any]) -> None:
        """The parts of one flag as its value; a flag that takes no JSON is given their text like any other."""
        text = json.dumps(parts)
        if flag.kind in JSON_KINDS:
            self.keep(flag, at.with_value(parts))
        elif flag.kind in NO_WORDS:
            self.refuse(at, f"unrecognized arguments: {text}")
        elif flag.kind == "list":
            self.keep(flag, at.with_value([text]))
        else:
            self.converted(flag, at.with_value(text))

    def look_into_objects(self) -> None:
        """The keys of JSON values."""
        for name, flag in self.reading.flags.items():
            value = self.reading.values[name]
            if "keys" in flag.row and isinstance(value, Located):
                for message, near in bad_keys(flag, value.value, self.table, self.era):
                    said = f"argument {_names(flag)}: {message}"
                    self.reading.problems.append(FlagProblem(value, said, depends_on_release=True, near=near))

    # Values

    def apply(self, option: Option, word: Located[str], value: Located[str] | None) -> None:
        """Give a flag its value: from the same word, from the words that follow, or by being there."""
        if option.flag.kind in NO_WORDS:
            self.set_boolean(option, word, value)
        elif option.flag.kind == "list" and value is None:
            self.set_list(option.flag, word)
        else:
            self.set_value(option.flag, word, value)

    def set_boolean(self, option: Option, word: Located[str], value: Located[str] | None) -> None:
        meant = word.respelled(word.value).with_value(option.sets)
        if value is not None:
            self.refuse(value, f"argument {_names(option.flag)}: ignored explicit argument {value.value!r}")
            meant = meant.with_value(option.sets == BOOLEANS.get(value.value.lower(), True))
        elif self.era.high < self.table.bare_booleans_since and (stated := self.next_boolean()) is not None:
            meant = meant.with_value(option.sets == stated)
        self.keep(option.flag, meant)

    def next_boolean(self) -> bool | None:
        """Old releases let a word follow a boolean flag (`--enable-chunked-prefill False`)."""
        following = self.words[self.place] if self.place < len(self.words) else None
        if not isinstance(following, Located) or following.value.lower() not in ("true", "false"):
            return None
        self.place += 1
        return following.value.lower() == "true"

    def set_list(self, flag: Flag, word: Located[str]) -> None:
        values: list[Word] = []
        while (value := self.next_value(of_list=bool(values))) is not None:
            values.append(value)
        if not values and (open_word := self.open_word()) is not None:
            self.keep(flag, open_word)
            return
        if not values:
            self.refuse(word, f"argument {_names(flag)}: expected at least one argument")
            return
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        texts = [value.value for value in values if isinstance(value, Located)]
        spelled = " ".join([word.value, *texts])
        self.keep(flag, unknown or Located(texts, values[0].span, spelled))

    def set_value(self, flag: Flag, word: Located[str], value: Located[str] | None) -> None:
        given = value if value is not None else self.next_value()
        if given is None and flag.kind == "optional":
            self.keep(flag, word.respelled(word.value).with_value(True))
        elif given is None and (open_word := self.open_word()) is not None:
            self.keep(flag, open_word._replace(spelled=f"{word.value} {open_word.spelled}"))
        elif given is None:
            self.refuse(word, f"argument {_names(flag)}: expected one argument")
        elif isinstance(given, Unknown):
            self.keep(flag, given._replace(spelled=f"{word.value} {given.spelled}"))
        else:
            self.converted(flag, given.respelled(_spelling(word, value, given)))

    def converted(self, flag: Flag, given: Located[str]) -> None:
        result = convert(flag, given.value, self.table, self.era)
        if isinstance(result, BadValue) and (placeholder := _FILLED_IN.search(given.value)) is not None:
            reason = f"{placeholder[0]} in it is filled in before the engine sees it"
            self.keep(flag, Unknown(reason, given.span, given.spelled))
            return
        if isinstance(result, BadValue):
            message = f"argument {_names(flag)}: {result.message}"
            problem = FlagProblem(given, message, depends_on_release=result.of_release, adds=result.adds)
            self.reading.problems.append(problem)
            if result.meant is None:
                self.keep(flag, Unknown(f"{given.value!r} is no value for {flag.name}", given.span, given.spelled))
                return
            result = result.meant
        self.keep(flag, given.with_value(result))

    def next_value(self, *, of_list: bool = False) -> Word | None:
        """The following word, if it is a value; None where a flag or the end follows."""
        if self.place >= len(self.words) or self.only_positionals:
            return None
        word = self.words[self.place]
        if isinstance(word, Unknown):
            if self.is_more_flags(word, of_list):
                return None
        elif word.value == "--" or self.is_option(word):
            return None
        self.place += 1
        return word

    def open_word(self) -> Unknown | None:
        """The following word, where it may stand for several: the first of them may be a value."""
        following = self.words[self.place] if self.place < len(self.words) else None
        is_open = isinstance(following, Unknown) and _MANY_WORDS.fullmatch(following.spelled)
        return following if is_open and isinstance(following, Unknown) else None

    def is_more_flags(self, word: Unknown, of_list: bool) -> bool:
        if _UNKNOWN_WITH_KEY.match(word.spelled) or _MANY_WORDS.fullmatch(word.spelled):
            return True
        return of_list and not _QUOTED.fullmatch(word.spelled)

    def keep(self, flag: Flag, value: Maybe[Any]) -> None:
        self.reading.values[flag.name] = value
        self.reading.flags[flag.name] = flag

    def refuse(self, at: Located[Any], message: str) -> None:
        self.reading.problems.append(FlagProblem(at, message))


def _refusal(word: Unknown, message: str) -> FlagProblem:
    return FlagProblem(Located(word.spelled, word.span, word.spelled), message)


def _may_be_flags(word: Unknown) -> bool:
    """A word that looks like it stands for several, or for flags."""
    return bool(_MANY_WORDS.fullmatch(word.spelled) or _NAMED_FOR_FLAGS.search(word.spelled))


def _dashed(key: str) -> str:
    """Underscores of a long flag as dashes, up to the first dot."""
    if not key.startswith("--"):
        return key
    head, dot, tail = key.partition(".")
    return head.replace("_", "-") + dot + tail


def _names(flag: Flag) -> str:
    """The flag as argparse names it in a message: `--tensor-parallel-size/-tp`."""
    return "/".join([flag.name, *(text for text, _, until in flag.row.get("spellings", ()) if until is None)])


def _spelling(word: Located[str], stuck: Located[str] | None, given: Located[str]) -> str:
    """As its author wrote it: `--tp 8`, `--tp=8`, `tp: 8` in a file of flags, or `tp=8` in a call."""
    if word.spelled.endswith(":"):
        return f"{word.spelled} {given.value}"
    if word.spelled.endswith("=") and word.spelled[:-1].isidentifier():
        return f"{word.spelled}{given.value}"
    return word.value if stuck is not None else f"{word.value} {given.value}"


def _is_boolean(word: Word) -> bool:
    return isinstance(word, Located) and word.value.lower() in ("true", "false")


def _after(word: Located[str], offset: int) -> Located[str]:
    """The rest of a word from an offset on, with its own span where the word stands in the file as it is."""
    return Located(word.value[offset:], _sub_span(word, offset), word.spelled, word.origin, word.source)


def _sub_span(word: Located[str], offset: int) -> Span | None:
    """Where the rest of a word stands: without quotes around it, and as written where a variable stands for it.

    The whole word where its text cannot be laid over its place (YAML escapes, a word that comes from elsewhere).
    """
    span, written = word.span, word.spelled
    if span is None or span.line != span.end_line or span.end_column - span.column != len(written):
        return span
    start = len(written) - len(written.lstrip(QUOTES))
    if not written.startswith(word.value[:offset], start):
        return span
    rest = written[start + offset :].lstrip(QUOTES)
    start, end = len(written) - len(rest), len(written.rstrip(QUOTES))
    return Span(span.path, span.line, span.column + start, span.line, span.column + end) if start < end else span


def _json_or_text(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return text


def _merge(parts: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put a value under a path of keys; lists grow, anything else is replaced."""
    for key in path[:-1]:
        inner = parts.get(key)
        if not isinstance(inner, dict):
            inner = parts[key] = {}
        parts = inner
    old = parts.get(path[-1])
    parts[path[-1]] = [*old, *value] if isinstance(old, list) and isinstance(value, list) else value


def fields(reading: Reading) -> Mapping[str, Maybe[Any]]:
    """What was written that is neither a knob nor the web server's concern, by the flags' names without dashes."""
    return {
        flag.field: reading.values[name] for name, flag in reading.flags.items() if flag.shown and flag.knob is None
    }
