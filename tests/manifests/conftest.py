"""Reads small manifests: what each launch is told, and whether its places cut the right text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import dedent

import pytest

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.text.documents import documents
from shardlint.text.source import Library, ModelFiles, Source


@dataclass
class Shelf(Library):
    """A library that is a dict."""

    files: Mapping[str, str]

    def sibling(self, path: str) -> Source | Unknown:
        return Source(path, self.files[path]) if path in self.files else Unknown(f"there is no {path}")

    def names_in(self, folder: str) -> tuple[str, ...]:
        split = [path.rpartition("/") for path in self.files]
        return tuple(sorted(name for within, _, name in split if within == folder.rstrip("/")))

    def model(self, model_id: str) -> ModelFiles | Unknown:
        return Unknown(f"there is no {model_id}")


@dataclass
class Read:
    """The launches of one file."""

    source: Source
    form: str | None
    launches: tuple[Launch, ...]

    @property
    def only(self) -> Launch:
        (launch,) = self.launches
        return launch

    def cut(self, place: Span | Maybe[object] | None) -> str:
        """The text at a place."""
        span = place.span if isinstance(place, Located | Unknown) else place
        assert span is not None
        lines = self.source.text.splitlines(keepends=True)
        start = sum(len(line) for line in lines[: span.line - 1]) + span.column - 1
        end = sum(len(line) for line in lines[: span.end_line - 1]) + span.end_column - 1
        return self.source.text[start:end]


Reader = Callable[..., Read]


@pytest.fixture
def read() -> Reader:
    def reader(text: str, path: str = "deploy/file.yaml", **files: str) -> Read:
        source = Source(path, dedent(text).lstrip("\n"))
        shelf = Shelf({name.replace("__", "/"): content for name, content in files.items()})
        found = [manifests.launches(document, shelf)[:2] for document in documents(source).documents]
        form = next((form for form, _ in found if form), None)
        return Read(source, form, tuple(launch for _, launches in found for launch in launches))

    return reader


def plain(launch: Launch) -> list[str]:
    """The words; unknown ones as they are spelled, in angle brackets."""
    return [word.value if isinstance(word, Located) else f"<{word.spelled}>" for word in launch.argv]


@pytest.fixture
def words() -> Callable[[Launch], list[str]]:
    return plain
