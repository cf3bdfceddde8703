"""The flags of an engine, release by release, and what a spelling means in one of them."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from shardlint.engines.versions import Version
from shardlint.findings.records import NamedTuple

Kind = Literal["int", "float", "str", "size", "length", "json", "object", "list", "optional", "bool", "switch"]
"""How many words a flag takes, and how they are read.

size: an int or 32k (thousands), 32K (of 1024); length: a size, or -1/auto for "work it out"; object: JSON that must be
an object; list: one word or more; optional: one word or none; bool: none, with a --no- form; switch: none, without.
"""


CLOSE = 0.82
"""How alike two spellings have to be to be taken for one another, 1 for the same."""


class Flag(NamedTuple):
    """One flag under its canonical name (`--tensor-parallel-size`)."""

    name: str
    kind: Kind
    knob: str | None = None
    """The knob that it sets, where it has a bearing on the layout."""
    shown: bool = True
    """False for what is of the web server's concern, or secret: it becomes no engine field."""
    nullable: bool = False
    """The words `None` and nothing at all stand for "not set"."""
    row: Mapping[str, Any] = MappingProxyType({})

    @property
    def field(self) -> str:
        """The name of its engine field: `mem-fraction-static`."""
        return self.name.lstrip("-")


class Option(NamedTuple):
    """One spelling of a flag: what a flag without a value sets, and the samples (by number) that know the spelling."""

    spelling: str
    flag: Flag
    sets: bool
    since: int
    until: int


class Era(NamedTuple):
    """The sampled releases that a version lies between (both the same where it is one of them).

    `complete` is False for a version older or newer than all samples: what they do not list may exist.
    """

    low: int
    high: int
    complete: bool = True


class Found(NamedTuple):
    """What a spelling means: its option, or the spellings that it abbreviates ambiguously.

    `accepted` is False where another release knows the spelling but not this one.
    """

    option: Option | None
    accepted: bool = True
    ambiguous: tuple[str, ...] = ()


class Table:
    """All flags of one engine over its sampled releases, from rows as `scripts/build_engine_tables.py` writes them.

    A row: `name`, `kind`, and where they differ from the usual `knob`, `spellings` (list of [text, since, until]),
    `since`, `until`, `default` (list of [since, value]), `choices` (list of [since, until, values]), `hidden`,
    `negated` (the release since which it has a --no- form).
    Beside the rows stand the releases since which the parser itself does a thing: `--no-x` (`negations_since`),
    `--disable-x` for `--enable-x` (`pairs_since`), `--x.key` (`dotted_since`), refuse a word after a boolean
    (`bare_booleans_since`), demand JSON objects (`objects_since`), read 32k and `auto`.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.names: Sequence[str] = document["versions"]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self.rows: Mapping[str, Mapping[str, Any]] = {row["name"]: row for row in document["flags"]}
        self.complete = not document.get("partial", False)
        self.negations_since = self.index(document.get("negations_since"), 0)
        self.pairs_since = self.index(document.get("pairs_since"), len(self.names))
        self.objects_since = self.index(document.get("objects_since"), 0)
        self.dotted_since = self.index(document.get("dotted_since"), 0)
        self.bare_booleans_since = self.index(document.get("bare_booleans_since"), 0)
        self.human_sizes_since = self.index(document.get("human_sizes_since"), 0)
        self.auto_length_since = self.index(document.get("auto_length_since"), 0)
        self.instead: Mapping[str, str] = document.get("instead", {})
        self._defaults: dict[int, Mapping[str, Any]] = {}

    def index(self, name: str | None, absent: int) -> int:
        """The number of a sampled release."""
        return absent if name is None else self._numbers[name]

    @property
    def last(self) -> int:
        return len(self.names) - 1

    def era(self, version: Version | None) -> Era:
        """Where a version lies among the samples; None is read as the newest."""
        if version is None or not self.complete:
            return Era(self.last, self.last, self.complete)
        place = bisect_left(self.names, version, key=Version.of)
        if place > self.last:
            return Era(self.last, self.last, complete=False)
        if Version.of(self.names[place]) == version:
            return Era(place, place)
        return Era(place - 1, place) if place else Era(0, 0, complete=False)

    def near(self, spelling: str, era: Era) -> tuple[str, ...]:
        """Flags that may be meant by one that a release does not know: the one that does the same, else close ones."""
        instead = self.instead.get(spelling)
        if instead is not None and self.find(instead.partition(".")[0], era).accepted:
            return (instead,)
        from difflib import get_close_matches  # only a mistake pays for it

        known = [text for text, options in self.options.items() if any(option.flag for option in options)]
        return tuple(
            found for found in get_close_matches(spelling, known, n=2, cutoff=CLOSE) if self.find(found, era).accepted
        )

    @cached_property
    def knobs(self) -> Mapping[str, Mapping[str, Any]]:
        """The row that sets each knob."""
        return {row["knob"]: row for row in self.rows.values() if "knob" in row}

    def defaults(self, sample: int) -> Mapping[str, Any]:
        """What each knob is in a sampled release, by number, when nobody writes it; None is left out."""
        if sample not in self._defaults:
            found = {knob: self._default(row, sample) for knob, row in self.knobs.items()}
            self._defaults[sample] = {knob: value for knob, value in found.items() if value is not None}
        return self._defaults[sample]

    def _default(self, row: Mapping[str, Any], sample: int) -> Any:
        value = None
        for since, declared in row.get("default", ()):
            if value is None or self.index(since, 0) <= sample:
                value = declared
        return value

    @cached_property
    def options(self) -> Mapping[str, tuple[Option, ...]]:
        """What every spelling means; several things where its meaning changed between releases."""
        found: dict[str, tuple[Option, ...]] = {}
        for row in self.rows.values():
            for option in self._spellings(row):
                found[option.spelling] = (*found.get(option.spelling, ()), option)
        return found

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.options)

    def find(self, spelling: str, era: Era) -> Found:
        """What argparse makes of a spelling: itself, else what it abbreviates, else what another release knows."""
        option = self.exact(spelling, era)
        if option is not None and _known(option, era):
            return Found(option)
        readings = [self._abbreviated(spelling, sample) for sample in dict.fromkeys((era.low, era.high))]
        for reading in readings:
            if len(reading) == 1:
                return Found(reading[0])
        longest = max(readings, key=len)
        return Found(option, accepted=option is None and not longest, ambiguous=tuple(o.spelling for o in longest))

    def exact(self, spelling: str, era: Era) -> Option | None:
        """The option of just this spelling, that of another release where this one has none."""
        options = self.options.get(spelling, ())
        return next((option for option in options if _known(option, era)), options[-1] if options else None)

    def takes(self, spelling: str, era: Era) -> bool:
        """Whether a release knows just this spelling."""
        option = self.exact(spelling, era)
        return option is not None and _known(option, era)

    def _abbreviated(self, prefix: str, sample: int) -> list[Option]:
        found: list[Option] = []
        for place in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            if not self._sorted[place].startswith(prefix):
                break
            found += [option for option in self.options[self._sorted[place]] if option.since <= sample <= option.until]
        return found

    def _spellings(self, row: Mapping[str, Any]) -> Iterator[Option]:
        flag = flag_of(row)
        since, until = self.index(row.get("since"), 0), self.index(row.get("until"), self.last)
        negated = self.index(row.get("negated"), self.negations_since)
        own = [(row["name"], since, until)]
        own += [(text, self.index(a, since), self.index(b, until)) for text, a, b in row.get("spellings", ())]
        for text, first, last in own:
            yield Option(text, flag, True, first, last)
            if flag.kind == "bool" and text.startswith("--"):
                yield Option("--no-" + text[2:], flag, False, max(first, negated), last)
                if (pair := _inverse(text)) is not None:
                    yield Option(pair, flag, False, max(first, self.pairs_since), last)


def flag_of(row: Mapping[str, Any]) -> Flag:
    """A row as a flag."""
    return Flag(
        name=row["name"],
        kind=row["kind"],
        knob=row.get("knob"),
        shown=not row.get("hidden", False),
        nullable=row.get("nullable", False),
        row=row,
    )


def read_table(text: str) -> Table:
    """A table from the text of its data file."""
    return Table(json.loads(text))


def _known(option: Option, era: Era) -> bool:
    return option.since <= era.high and era.low <= option.until


def _inverse(spelling: str) -> str | None:
    for prefix, other in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
        if spelling.startswith(prefix):
            return other + spelling[len(prefix) :]
    return None
