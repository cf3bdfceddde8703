"""What the documents of a YAML file are, by its lines that are not indented: enough to tell that none is wanted."""

from __future__ import annotations

from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple
from shardlint.text.source import Source

_KIND = Pattern(r"\nkind: *(\w+)")
_KEY = Pattern(r"([A-Za-z][\w.-]*):(?: +(.*))?")
_WORD = Pattern(r"[\w./-]+")
_NOT_BY_LINES = ("{{", "{%", "\r", "\x85", "\u2028", "\u2029", "\ufeff")
"""Templates, and breaks of lines that are none here."""
_ANCHOR = Pattern(r"(?:^|[\s\[{,])[&*][^\s&*]")
"""An anchor or an alias, or what looks like one."""
_CLOSERS = {"'": "'", '"': '"', "[": "]", "{": "}"}


class Head(NamedTuple):
    """One document: the kind and the API version of the object that it is, and the keys at its top."""

    kind: str
    version: str
    keys: tuple[str, ...]


def kinds(source: Source) -> list[str]:
    """Kinds of objects, most of those in the file among them: a quick first look."""
    return _KIND.findall(source.text)


def heads(source: Source) -> list[Head] | None:
    """The documents of a file, empty ones left out; None where only parsing can tell.

    It can be told of mappings in blocks, where what stands behind a key at the top ends on its line or is indented
    below it.  Whether the file is YAML at all is another question.
    """
    text = source.text
    if not source.path.lower().endswith((".yaml", ".yml")) or any(mark in text for mark in _NOT_BY_LINES):
        return None
    if ("&" in text or "*" in text) and _ANCHOR.search(text):
        return None
    documents: list[dict[str, str]] = [{}]
    key = ""
    for line in text.split("\n"):
        first = line[:1]
        if first in ("", "#"):
            continue
        if first in (" ", "\t"):
            if key in ("", "kind", "apiVersion") and line.lstrip()[:1] not in ("", "#"):
                return None
        elif line.rstrip() == "---":
            key = ""
            if documents[-1]:
                documents.append({})
        elif not (line.startswith("- ") and documents[-1].get(key) == ""):  # the entries of a list may not be indented
            match = _KEY.fullmatch(line)
            if match is None or match[1] in documents[-1]:
                return None
            key = match[1]
            documents[-1][key] = _value(match[2] or "")
    found = [_head(values) for values in documents if values]
    return [head for head in found if head is not None] if found and None not in found else None


def _value(text: str) -> str:
    """What stands behind a key, its comment cut off."""
    return "" if text.startswith("#") else text.partition(" #")[0].strip()


def _head(values: dict[str, str]) -> Head | None:
    """None where a value goes on below its line, the object holds others, or what it is is said in no plain word."""
    for value in values.values():
        closer = _CLOSERS.get(value[:1])
        if closer is not None and not value.find(closer, 1) == len(value) - 1 > 0:
            return None
    kind, version = (_unquoted(values.get(name, "")) for name in ("kind", "apiVersion"))
    told = all(_WORD.fullmatch(word) for name, word in (("kind", kind), ("apiVersion", version)) if name in values)
    return Head(kind, version, tuple(values)) if told and kind != "Template" and not kind.endswith("List") else None


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value
