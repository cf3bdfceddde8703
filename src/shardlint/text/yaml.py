"""YAML and JSON text -> documents of nodes with exact places, by PyYAML's C composer."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from shardlint.findings import Problem
from shardlint.findings.patterns import Pattern, compiled_when_used
from shardlint.text import templates
from shardlint.text.documents import Document, Parsed
from shardlint.text.nodes import Page
from shardlint.text.source import Source

with compiled_when_used():  # 9 ms of every run, most of it for the reader that is not in C
    import yaml

_C_LOADER: Any = getattr(yaml, "CSafeLoader", None)
_BASE: Any = _C_LOADER or yaml.SafeLoader
_MARKER = Pattern(r"^(?=---(?:[ \t\r\n]|\Z))|(?<=^\.\.\.)[^\n]*\n", re.MULTILINE)
_PREAMBLE = Pattern(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n|\.\.\.[^\n]*\n)*+[ \t]*(?:#[^\n]*)?")
_CONFLICT = Pattern(r"^(?:<{7}|>{7}|\|{7}) .*$|^={7}$", re.MULTILINE)
_UNREADABLE = (yaml.YAMLError, RecursionError, UnicodeEncodeError)


class _Loader(_BASE):  # type: ignore[misc]
    """Remembers the tags of texts: manifests repeat their words, and working a tag out costs as much as a node."""

    resolve = staticmethod(lru_cache(maxsize=4096)(yaml.resolver.Resolver().resolve))

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        """Is called for each node, as the next: no tag hangs on the path to it."""

    def ascend_resolver(self) -> None:
        pass


class _Lenient(yaml.composer.Composer, _Loader):
    """Lets an anchor be set anew, as YAML 1.2 does and the C composer does not."""

    def __init__(self, stream: str) -> None:
        _BASE.__init__(self, stream)
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if not self.check_event(yaml.AliasEvent):
            self.anchors.pop(self.peek_event().anchor, None)
        return super().compose_node(parent, index)


def documents(source: Source) -> Parsed:
    """Every document that can be read; a Problem at its exact place for each that cannot."""
    start = 1 if source.text.startswith("\ufeff") else 0
    invalid: tuple[Problem, ...] = ()
    if _looks_like_json(source, start):
        try:
            return Parsed((_json(source, start),))
        except (ValueError, RecursionError) as error:
            if source.path.endswith(".json"):
                invalid = (_json_problem(source, start, error),)
    masked = templates.mask(source.text)
    try:
        found = Parsed(tuple(_composed(source, masked, start, len(masked.text))))
    except _UNREADABLE:
        found = _one_by_one(source, masked, start)
    return Parsed(found.documents, invalid or found.problems) if not masked.pieces else found


def is_well_formed(text: str) -> bool:
    """Whether the parser reads the whole text; False where it cannot say so at a fraction of what its nodes cost."""
    if _C_LOADER is None:
        return False
    try:
        _Loader(text).raw_parse()
    except _UNREADABLE:
        return False
    return True


def _looks_like_json(source: Source, start: int) -> bool:
    return source.path.endswith(".json") or source.text[start : start + 4096].lstrip()[:1] in ("{", "[")


def _json(source: Source, start: int) -> Document:
    from shardlint.text import json_text

    page = Page(source, source.text, start=0, json=True)
    return Document(source, "yaml", page.open(json_text.compose(source.text, start)))


def _json_problem(source: Source, start: int, error: Exception) -> Problem:
    at = start + getattr(error, "pos", 0)
    reason = getattr(error, "msg", "it is nested too deeply")
    return Problem(source.span(at, at), f"This is not valid JSON: {reason[:1].lower()}{reason[1:]}.")


def _composed(source: Source, masked: templates.Masked, start: int, end: int) -> Iterator[Document]:
    """The documents of one stretch; raises at the first that is broken."""
    text, before = masked.text[start:end], start
    for node in _nodes(text):
        page = Page(source, masked.text, start, masked.pieces, masked.conditions)
        root = page.open(node)
        yield Document(source, "yaml", root, templated=page.masked(before, page.end))
        before = page.end
    if before == start and any(start <= first < end for first, _ in masked.pieces):
        yield Document(source, "yaml", templated=True)


def _nodes(text: str) -> list[Any]:
    """The garbage collector rests meanwhile: it finds nothing, and takes 4 of 5 seconds on files of megabytes."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return list(yaml.compose_all(text, _Loader))
    except yaml.composer.ComposerError as error:
        if "duplicate anchor" not in str(error.context):
            raise
        return list(yaml.compose_all(text, _Lenient))
    finally:
        if collects:
            gc.enable()


def _one_by_one(source: Source, masked: templates.Masked, start: int) -> Parsed:
    """Between document markers each stretch is read for itself, so that one broken document spoils no other."""
    found: list[Document] = []
    problems: list[Problem] = []
    for first, last in _stretches(masked.text, start):
        try:
            found.extend(_composed(source, masked, first, last))
        except _UNREADABLE as error:
            filled_in = _with_placeholders(source, masked, first, last)
            if filled_in is None:
                problems.append(_problem(source, masked, first, last, error))
            found.extend(filled_in or _with_one_side(source, masked, first, last))
    return Parsed(tuple(found), tuple(problems))


def _with_placeholders(source: Source, masked: templates.Masked, start: int, end: int) -> list[Document] | None:
    """The documents of a stretch that envsubst makes YAML of; None where placeholders are not what breaks it."""
    if "${" not in masked.text[start:end]:
        return None
    try:
        found = list(_composed(source, templates.with_placeholders(masked, start, end), start, end))
    except _UNREADABLE:
        return None
    roots = [document.root for document in found if document.root is not None]
    is_compose = any(root.get("services") is not None and root.get("apiVersion") is None for root in roots)
    return None if is_compose else found  # Compose has placeholders too, and reads the YAML before it fills them in


def _with_one_side(source: Source, masked: templates.Masked, start: int, end: int) -> list[Document]:
    """The documents of a stretch in which Git left conflicts, by the first side of each."""
    if _CONFLICT.search(source.text, start, end) is None:
        return []
    from shardlint.text.conflicts import ours

    text = masked.text
    try:
        one_side = masked._replace(text=text[:start] + ours(text[start:end]) + text[end:])
        return list(_composed(source, one_side, start, end))
    except _UNREADABLE:
        return []


def _stretches(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Document by document; directives and comments before a marker go with what follows it."""
    for cut in _MARKER.finditer(text, start):
        if cut.end() < len(text) and not _PREAMBLE.fullmatch(text, start, cut.end()):
            yield start, cut.end()
            start = cut.end()
    yield start, len(text)


def _problem(source: Source, masked: templates.Masked, start: int, end: int, error: Exception) -> Problem:
    conflict = _CONFLICT.search(source.text, start, end)
    if conflict is not None:
        return Problem(source.span(*conflict.span()), "Git left a conflict here that has to be resolved first.")
    at, reason = _place_and_reason(masked, start, error)
    at = min(at, len(source.text))
    if any(start <= first < end for first, _ in masked.pieces):
        message = f"This template cannot be read as YAML before it is rendered: {reason}."
        return Problem(source.span(at, at), message, severity="note")
    return Problem(source.span(at, at), f"This is not valid YAML: {reason}.")


def _place_and_reason(masked: templates.Masked, start: int, error: Exception) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        return start + (mark.index if mark else 0), reason
    if isinstance(error, yaml.reader.ReaderError):
        return start + _characters(masked.text[start:], error.position), str(error.reason)
    if isinstance(error, UnicodeEncodeError):
        return start + error.start, "half a surrogate pair stands there"
    return start, "it is nested too deeply"


def _characters(text: str, position: int) -> int:
    """The C reader counts bytes of UTF-8."""
    return len(text.encode()[:position].decode(errors="ignore")) if _C_LOADER else position
