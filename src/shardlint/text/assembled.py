"""Documents put together from values of several files, each of which keeps the place where it was written.

What tools make of manifests before they apply them (overlays, values over values) is written as one text of JSON in
YAML's flow style; every character of it knows the file and the place that it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, TypeAlias, Union

from shardlint.findings import Span
from shardlint.text.documents import Document
from shardlint.text.nodes import CORE_TAGS, Mapping, Node, Scalar, Sequence
from shardlint.text.source import Fragment, Source

Tree: TypeAlias = Union[Node, Fragment, dict[str, "Tree"], list["Tree"]]  # noqa: UP007 a name in quotes knows no `|`
"""A value: as some file has it, text of a file that is no YAML, or put together from others."""

MOST_CHARACTERS = 4_000_000
DEEPEST = 100
_PLAIN_TAGS = tuple(CORE_TAGS + name for name in ("int", "float", "bool", "null"))
_ESCAPED = {"\x7f": "\\x7f", "\x85": "\\x85", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class TooLarge(ValueError):
    """What was put together grows beyond all measure: aliases inside aliases double with every level."""


class Assembled(Source):
    """The text of documents that were put together; a place in it is the place that it comes from."""

    __slots__ = ("_offsets", "_owners", "_sources")

    def __init__(self, path: str, text: str, offsets: list[int], owners: list[int], sources: list[Source]) -> None:
        super().__init__(path, text)
        self._offsets: Final = offsets
        self._owners: Final = owners
        self._sources: Final = sources

    def span(self, start: int, end: int) -> Span:
        """Where the first character stands, up to the last one where the same file has both."""
        start = min(start, len(self._offsets) - 1)
        last = max(start, min(end, len(self._offsets)) - 1)
        owner = self._owners[start]
        first = self._offsets[start]
        after = self._offsets[last] + (end > start) if self._owners[last] == owner else first
        return self._sources[owner].span(first, max(first, after))

    def offset(self, line: int, column: int) -> int:
        """Lines are those of the files behind it, so that none of them is found here: the end of the text."""
        return len(self.text)


def assemble(trees: Iterable[Tree], base: Source) -> tuple[Document, ...]:
    """Each tree as a document. `base` is the file that asks for it. Raises TooLarge."""
    from shardlint.text import yaml

    writer = _Writer(base)
    for tree in trees:
        writer.put("---\n")
        writer.tree(tree, 0)
        writer.put("\n")
    return yaml.documents(writer.source()).documents


def merged(below: Tree | None, above: Tree | None) -> Tree | None:
    """Values over values, as Helm does it: mappings key by key, anything else replaced; a null takes a key away."""
    if above is None or below is None:
        return below if above is None else above
    if not (is_mapping(below) and is_mapping(above)):
        return above
    found = dict(entries(below))
    for key, value in entries(above):
        if isinstance(value, Scalar) and value.is_null:
            found.pop(key, None)
        elif (both := merged(found.get(key), value)) is not None:
            found[key] = both
    return found


def is_mapping(tree: Tree | None) -> bool:
    return isinstance(tree, Mapping | dict)


def entries(tree: Tree | None) -> list[tuple[str, Tree]]:
    """The entries of a mapping; none of anything else."""
    if isinstance(tree, Mapping):
        return [(key.text, value) for key, value in tree.items()]
    return list(tree.items()) if isinstance(tree, dict) else []


def members(tree: Tree | None) -> list[Tree]:
    """The entries of a sequence; none of anything else."""
    return list(tree) if isinstance(tree, Sequence | list) else []


def at(tree: Tree | None, *path: str) -> Tree | None:
    """The value at a path of keys."""
    for step in path:
        tree = dict(entries(tree)).get(step)
    return tree


def text_at(tree: Tree | None, *path: str) -> str:
    """The text of the scalar at a path; empty where there is none."""
    found = at(tree, *path)
    if isinstance(found, Fragment):
        return found.text.strip()
    return found.text.strip() if isinstance(found, Scalar) and not found.is_null else ""


class _Writer:
    def __init__(self, base: Source) -> None:
        self._base = base
        self._text: list[str] = []
        self._length = 0
        self._offsets: list[int] = []
        self._owners: list[int] = []
        self._sources: list[Source] = [base]
        self._indexes: dict[int, int] = {id(base): 0}
        self._last = (0, 0)

    def source(self) -> Assembled:
        return Assembled(self._base.path, "".join(self._text), self._offsets, self._owners, self._sources)

    def tree(self, tree: Tree, depth: int) -> None:
        if depth > DEEPEST or self._length > MOST_CHARACTERS:
            raise TooLarge
        if isinstance(tree, Scalar):
            self._scalar(tree)
        elif isinstance(tree, Fragment):
            self._text_of(tree)
        elif is_mapping(tree):
            self._collection(tree, "{}", depth)
        else:
            self._collection(tree, "[]", depth)

    def _collection(self, tree: Tree, brackets: str, depth: int) -> None:
        if isinstance(tree, Node):
            self._place(tree.source, tree.start)
        self.put(brackets[0])
        keys = {key.text: key for key, _ in tree.items()} if isinstance(tree, Mapping) else {}
        pairs: list[tuple[str | None, Tree]] = (
            [*entries(tree)] if brackets == "{}" else [(None, one) for one in members(tree)]
        )
        for number, (key, value) in enumerate(pairs):
            if number:
                self.put(", ")
            if key is not None:
                self._key(key, keys.get(key), value)
            self.tree(value, depth + 1)
        if isinstance(tree, Node):
            self._place(tree.source, max(tree.start, tree.end - 1))
        self.put(brackets[1])

    def _key(self, key: str, written: Scalar | None, value: Tree) -> None:
        if written is not None:
            self._scalar(written, as_text=True)
        else:
            if isinstance(value, Node):
                self._place(value.source, value.start)
            self.put(json.dumps(key, ensure_ascii=False))
        self.put(": ")

    def _scalar(self, scalar: Scalar, *, as_text: bool = False) -> None:
        if not scalar.templated and not scalar.style and not as_text and scalar.tag in _PLAIN_TAGS:
            self._quoted(scalar, "", "")
        elif scalar.tag.startswith(CORE_TAGS) or scalar.tag == "!":
            self._quoted(scalar, '"', '"')
        else:
            self._quoted(scalar, f'{_tag(scalar)} "', '"')

    def _quoted(self, scalar: Scalar, opening: str, closing: str) -> None:
        fragment = scalar.fragment()
        self._place(scalar.source, scalar.start)
        self.put(opening if opening or fragment.text else "null")
        for character, offset in zip(fragment.restored(), fragment.offsets, strict=False):
            self._place(scalar.source, offset)
            self.put(_escape(character) if opening else character)
        self._place(scalar.source, max(scalar.start, scalar.end - 1))
        self.put(closing)

    def _text_of(self, fragment: Fragment) -> None:
        self._place(fragment.source, fragment.offsets[0])
        self.put('"')
        for character, offset in zip(fragment.restored(), fragment.offsets, strict=False):
            self._place(fragment.source, offset)
            self.put(_escape(character))
        self.put('"')

    def put(self, text: str) -> None:
        """Adds text that stands where the last thing does."""
        owner, offset = self._last
        self._text.append(text)
        self._length += len(text)
        self._offsets += [offset] * len(text)
        self._owners += [owner] * len(text)

    def _place(self, source: Source, offset: int) -> None:
        index = self._indexes.get(id(source))
        if index is None:
            index = self._indexes[id(source)] = len(self._sources)
            self._sources.append(source)
        self._last = (index, offset)


def _tag(scalar: Scalar) -> str:
    return scalar.tag if scalar.tag.startswith("!") else f"!<{scalar.tag}>"


def _escape(character: str) -> str:
    return _ESCAPED.get(character) or json.dumps(character, ensure_ascii=False)[1:-1]
