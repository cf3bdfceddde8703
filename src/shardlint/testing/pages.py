"""The format of a rule's page: Markdown for people, whose section `## Cases` is the rule's test.

A case is a heading `### Flagged: TITLE`, `### Fine: TITLE` or `### Nearest miss: TITLE`, and below it:

* what is given beside the manifest, as a list: `- hardware: 8xH100`, `- vllm: 0.11.0`, and `- config: {...}`, whose
  keys replace those of the page's own block `json config.json` (null takes one away; without any block there is no
  model);
* the manifest, a fenced block of the language `sh` or `yaml`;
* under a flagged case a block quote for each finding. Its first line is severity, effect and the text that the
  finding stands on; lines with a word and a colon ask for more:

      > error, refuses-at-start, on `3`
      > sum: 32 heads % 3 = 2
      > says: 32 attention heads
      > help: --tensor-parallel-size 4

A nearest miss differs from a flagged case in one word or number, and nothing is said about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["flagged", "fine", "nearest miss"]
KINDS: tuple[Kind, ...] = ("flagged", "fine", "nearest miss")
EXTENSIONS = {"sh": "sh", "bash": "sh", "yaml": "yaml", "json": "json"}
GIVEN = ("hardware", "vllm", "config")
ASKED = ("sum", "says", "help")

_FIRST_LINE = re.compile(r"(?P<severity>error|warning|note)(?:, (?P<effect>[a-z-]+))?, on `(?P<on>.*)`")
_TOKEN = re.compile(r"\w+|[^\w\s]")


class PageError(ValueError):
    """A page that is not in the format; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One finding that a flagged case must have. `on` is the text that it stands on."""

    severity: str
    effect: str | None
    on: str
    asked: tuple[tuple[str, str], ...] = ()
    """Texts that `sum` must be, and that the message (`says`) or one of the help texts (`help`) must hold."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test case of a page."""

    kind: Kind
    title: str
    path: str = ""
    text: str = ""
    config: Mapping[str, Any] | None = None
    hardware: str | None = None
    vllm: str | None = None
    expected: tuple[Expectation, ...] = ()
    line: int = 0
    side_files: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.title}"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words and numbers of all that the case gives."""
        given = json.dumps([self.config, self.hardware, self.vllm], sort_keys=True)
        return tuple(_TOKEN.findall(f"{given}\n{self.text}"))


def is_one_token_away(case: Case, other: Case) -> bool:
    """Whether two cases differ, and in one word or number only."""
    mine, theirs = list(case.tokens), list(other.tokens)
    for end in (0, -1):
        while mine and theirs and mine[end] == theirs[end]:
            del mine[end], theirs[end]
    return max(len(mine), len(theirs)) == 1


def read_page(text: str, name: str = "page") -> tuple[Case, ...]:
    """The cases of a page, in its order. Raises PageError where it is not in the format."""
    reader = _Reader(name)
    for number, line in enumerate(text.splitlines(), 1):
        reader.line(number, line)
    return tuple(reader.finished())


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.config: Mapping[str, Any] | None = None
        self.cases: list[Case] = []
        self.in_cases = False
        self.fence: tuple[str, list[str]] | None = None

    def line(self, number: int, line: str) -> None:
        self.number = number
        if line.startswith("```"):
            self.fenced(line[3:].strip())
        elif self.fence is not None:
            self.fence[1].append(line)
        elif line.startswith("## "):
            self.in_cases = line == "## Cases"
        elif self.in_cases and line.startswith("### "):
            self.heading(line[4:])
        elif self.in_cases and self.cases and line.startswith("- "):
            self.given(line[2:])
        elif self.in_cases and self.cases and line.startswith("> "):
            self.quoted(line[2:])

    def finished(self) -> Iterator[Case]:
        for case in self.cases:
            self.number = case.line
            if not case.text:
                raise self.error(f"the case {case.title!r} has no manifest")
            if (case.kind == "flagged") != bool(case.expected):
                raise self.error(f"the case {case.title!r} is {case.kind} and has {len(case.expected)} expectations")
            yield case

    def error(self, reason: str) -> PageError:
        return PageError(f"{self.name}, line {self.number}: {reason}")

    def heading(self, text: str) -> None:
        word, colon, title = text.partition(": ")
        kind = next((kind for kind in KINDS if kind == word.lower()), None)
        if kind is None or not colon:
            raise self.error(f"a case is headed Flagged, Fine or Nearest miss with a colon, not {text!r}")
        self.cases.append(Case(kind, title, config=self.config, line=self.number))

    def fenced(self, info: str) -> None:
        if self.fence is None:
            self.fence = (info, [])
            return
        (opened, lines), self.fence = self.fence, None
        if not self.in_cases:
            return
        text = "\n".join(lines) + "\n"
        language, _, file_name = opened.partition(" ")
        if file_name == "config.json":
            self.config = self.json(text)
        elif self.cases and language in EXTENSIONS:
            self.change(text=text, path=file_name or f"case.{EXTENSIONS[language]}")
        else:
            raise self.error(f"a block of {opened!r} belongs to no case")

    def given(self, text: str) -> None:
        word, _, value = text.partition(": ")
        if word not in GIVEN or not value:
            raise self.error(f"what is given is one of {', '.join(GIVEN)}, not {word!r}")
        if word == "config":
            merged = {**(self.config or {}), **self.json(value)}
            self.change(config={key: found for key, found in merged.items() if found is not None})
        else:
            self.change(**{word: value})

    def quoted(self, text: str) -> None:
        expected = self.cases[-1].expected
        if match := _FIRST_LINE.fullmatch(text):
            self.change(expected=(*expected, Expectation(match["severity"], match["effect"], match["on"])))
            return
        word, _, value = text.partition(": ")
        if word not in ASKED or not expected:
            raise self.error(f"not an expectation: {text!r}")
        last = replace(expected[-1], asked=(*expected[-1].asked, (word, value)))
        self.change(expected=(*expected[:-1], last))

    def change(self, **changes: Any) -> None:
        self.cases[-1] = replace(self.cases[-1], **changes)

    def json(self, text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except ValueError as cause:
            raise self.error(f"not JSON: {cause}") from cause
        if not isinstance(value, dict):
            raise self.error("a config is a JSON object")
        return value
