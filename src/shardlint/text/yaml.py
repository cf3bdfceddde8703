"""YAML and JSON text -> documents of nodes with exact places, by PyYAML's C composer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from shardlint.findings import Problem
from shardlint.text import templates
from shardlint.text.documents import Document, Parsed
from shardlint.text.nodes import Page
from shardlint.text.source import Source

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MARKER = re.compile(r"^(?=---(?:[ \t\r\n]|\Z))|(?<=^\.\.\.)[^\n]*\n", re.MULTILINE)
_ONLY_PREAMBLE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n|\.\.\.[^\n]*\n)*[ \t]*(?:#[^\n]*)?")


def documents(source: Source) -> Parsed:
    """Every document that can be read; a Problem at its exact place for each that cannot."""
    masked = templates.mask(source.text)
    start = 1 if masked.text.startswith("\ufeff") else 0
    try:
        return Parsed(tuple(_composed(source, masked, start, len(masked.text))))
    except (yaml.YAMLError, RecursionError, UnicodeEncodeError):
        return _one_by_one(source, masked, start)


def _composed(source: Source, masked: templates.Masked, start: int, end: int) -> Iterator[Document]:
    page = Page(source, masked.text, start, masked.pieces)
    for node in yaml.compose_all(masked.text[start:end], _Loader):
        root = page.wrap(node)
        templated = page.masked(root._node.start_mark.index + start, root._mark_end)
        yield Document(source, "yaml", root, templated=templated)


def _one_by_one(source: Source, masked: templates.Masked, start: int) -> Parsed:
    """Between document markers each stretch is read for itself, so that one broken document spoils no other."""
    found: list[Document] = []
    problems: list[Problem] = []
    for first, last in _stretches(masked.text, start):
        try:
            found.extend(_composed(source, masked, first, last))
        except (yaml.YAMLError, RecursionError, UnicodeEncodeError) as error:
            problems.append(_problem(source, masked, first, error))
    return Parsed(tuple(found), tuple(problems))


def _stretches(text: str, start: int) -> Iterator[tuple[int, int]]:
    cuts = [cut.end() for cut in _MARKER.finditer(text, start)]
    for cut in [*cuts, len(text)]:
        if cut == len(text) or not _ONLY_PREAMBLE.fullmatch(text, start, cut):
            yield start, cut
            start = cut


def _problem(source: Source, masked: templates.Masked, base: int, error: Exception) -> Problem:
    at, reason = base, "it is nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        at = base + (mark.index if mark else 0)
        reason = ", ".join(part for part in (error.context, error.problem) if part)
    elif isinstance(error, yaml.reader.ReaderError):
        at = base + len(masked.text[base:].encode()[: error.position].decode(errors="ignore"))
        reason = str(error.reason)
    elif isinstance(error, UnicodeEncodeError):
        at, reason = base + error.start, "half a surrogate pair stands there"
    at = min(at, len(source.text))
    return Problem(source.span(at, at), f"This is not valid YAML: {reason}.")
