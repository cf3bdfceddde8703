"""YAML and JSON values that know where they stand: lazy wrappers over the nodes of PyYAML's composer."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, KeysView
from itertools import chain
from typing import Any

from shardlint.findings import Duplicate, Located, Span, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.text.source import MASK, Fragment, Source, Stretches

CORE_TAGS = "tag:yaml.org,2002:"
NULL = CORE_TAGS + "null"
MERGE = CORE_TAGS + "merge"
WALK_LIMIT = 2_000_000
"""Nodes that one walk visits at most; the largest manifests have some ten thousand."""

_BREAK = "[\n\r\x85\u2028\u2029]"  # all that libyaml takes for the end of a line
_PROPERTIES = Pattern(rf"(?:[&!]\S*(?:[ \t]+|(?:[ \t]*(?:#[^\n]*)?{_BREAK})+[ \t]*|$))+")
_LOOK_BACK = 2_000
"""Characters before a collection that are searched for a template between its key and its first entry."""
_BLANK = Pattern(r"\s*")
_TAIL = Pattern(r"(?:\s|^[ \t]*#[^\n]*$)*\Z", re.MULTILINE)


class Page:
    """What the nodes of one document share: the file, the text that the parser saw, and where it begins.

    `text` is as long as `source.text` and differs from it only where a template was masked; `start` is the place in
    the file of the first character that the parser saw.  `masks` are the stretches of the file that were masked, in
    order, and `conditions` those that a template may leave out or repeat, by their beginning.

    It knows the composer's nodes and not their wrappers, so that a document which is done with goes at once: nothing
    here points in a circle, and none of it waits for the garbage collector.
    """

    __slots__ = (
        "_entries",
        "_innermost",
        "_outermost",
        "_root",
        "conditions",
        "end",
        "json",
        "masks",
        "root_start",
        "source",
        "start",
        "text",
    )

    def __init__(
        self,
        source: Source,
        text: str,
        start: int = 0,
        masks: Stretches = (),
        conditions: Stretches = (),
        json: bool = False,
    ) -> None:
        self.source = source
        self.text = text
        self.start = start
        self.masks = masks
        self.conditions = conditions
        self.json = json
        self.root_start = self.end = 0
        self._root: Any = None
        self._entries: dict[int, dict[str, tuple[Any, Any]]] = {}
        self._outermost: list[tuple[int, int]] | None = None
        self._innermost: tuple[list[int], list[tuple[int, int] | None]] | None = None

    def open(self, root: Any) -> Node:
        """The wrapper of the root node."""
        self._root = root  # as long as it lives, so do the nodes whose ids the entries go by
        self.root_start = root.start_mark.index + self.start
        self.end = root.end_mark.index + self.start
        return self.wrap(root)

    def wrap(self, node: Any) -> Node:
        """A wrapper of a composed node; all of one node are equal."""
        return _KINDS[node.id](node, self)

    def child(self, node: Any, step: str | int) -> Any:
        """The composed node under a key or at an index of another; None where nothing is written."""
        if node.id == "mapping":
            entry = self.entries(node).get(str(step))
            return entry[1] if entry else None
        if node.id == "sequence" and isinstance(step, int) and -len(node.value) <= step < len(node.value):
            return node.value[step]
        return None

    def below(self, node: Any, path: Iterable[str | int]) -> Node | None:
        """The wrapper of what stands at the end of a path: nothing before it is wrapped."""
        known = self._entries
        for step in path:
            if node.id == "mapping" and id(node) in known and type(step) is str:  # most steps, and they are many
                entry = known[id(node)].get(step)
                node = None if entry is None else entry[1]
            else:
                node = self.child(node, step)
            if node is None:
                return None
        return self.wrap(node)

    def entries(self, mapping: Any) -> dict[str, tuple[Any, Any]]:
        """Keys and values of a composed mapping by the key's text."""
        found = self._entries.get(id(mapping))
        if found is None:
            found = self._entries[id(mapping)] = _entries_of(mapping)
        return found

    def masked(self, start: int, end: int) -> bool:
        """Whether a template stands between two places of the file."""
        after = bisect_left(self.masks, (end, 0))
        return after > 0 and self.masks[after - 1][1] > start

    def conditional(self, at: int) -> bool:
        """Whether a template may leave out what stands at a place, but not the whole document with it."""
        if self._outermost is None:
            self._outermost = _outermost(self.conditions, self.root_start)
        after = bisect_left(self._outermost, (at + 1, 0))
        return after > 0 and at < self._outermost[after - 1][1]

    def optional_part(self, node: Node, at: int) -> bool:
        """Whether a template may leave out what stands at a place within a node, but not all of the node with it."""
        if self._innermost is None:
            self._innermost = _innermost(self.conditions)
        places, stretches = self._innermost
        place = bisect_right(places, at) - 1
        around = stretches[place] if place >= 0 else None
        return around is not None and not (around[0] <= node.start and node.end <= around[1])


def _innermost(stretches: Stretches) -> tuple[list[int], list[tuple[int, int] | None]]:
    """The places where the innermost of nested stretches is another one, and which it is from there on."""
    places: list[int] = []
    innermost: list[tuple[int, int] | None] = []
    around: list[tuple[int, int]] = []
    for first, last in (*stretches, (sys.maxsize, sys.maxsize)):
        while around and around[-1][1] <= first:
            places.append(around.pop()[1])
            innermost.append(around[-1] if around else None)
        around.append((first, last))
        places.append(first)
        innermost.append(around[-1])
    return places, innermost


def _outermost(stretches: Stretches, begin: int) -> list[tuple[int, int]]:
    """Those that start behind `begin` and lie in no other such one."""
    kept: list[tuple[int, int]] = []
    for first, last in stretches:
        if first > begin and (not kept or first >= kept[-1][1]):
            kept.append((first, last))
    return kept


class Node:
    """A value of a document. Equal where it is the same place of the file: an alias is equal to its anchor."""

    __slots__ = ("_node", "_page")

    def __init__(self, node: Any, page: Page) -> None:
        self._node = node
        self._page = page

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._node is other._node

    def __hash__(self) -> int:
        return id(self._node)

    @property
    def tag(self) -> str:
        """The resolved tag; `!Ref` and its like as written."""
        return str(self._node.tag)

    @property
    def start(self) -> int:
        """Place in the file of the first character, anchor and tag left out."""
        start: int = self._node.start_mark.index + self._page.start
        text = self._page.text
        if text[start : start + 1] in ("&", "!") and (properties := _PROPERTIES.match(text, start, self._mark_end)):
            return properties.end()
        return start

    @property
    def end(self) -> int:
        """Place in the file after the last character."""
        return self._mark_end

    @property
    def _mark_end(self) -> int:
        return int(self._node.end_mark.index) + self._page.start

    @property
    def source(self) -> Source:
        return self._page.source

    @property
    def span(self) -> Span:
        return self._page.source.span(self.start, self.end)

    @property
    def spelled(self) -> str:
        """The text as written, quotes included."""
        return self._page.source.text[self.start : self.end]

    @property
    def templated(self) -> bool:
        """Whether a template decides any part of it, or whether it is there at all."""
        page = self._page
        return bool(page.masks) and (page.masked(self.start, self._reach) or page.conditional(self.start))

    @property
    def _reach(self) -> int:
        """Up to where a template would add to this value."""
        return self.end

    def get(self, *path: str | int) -> Node | None:
        """The node at a path of keys and indexes below this one; None where nothing is written."""
        return self._page.below(self._node, path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.span.line}:{self.span.column} {self.spelled[:40]!r}>"


class _Collection(Node):
    """Ends where its last entry does: the parser's own mark stands before the next token, comments included."""

    __slots__ = ()

    @property
    def end(self) -> int:
        node = self._node
        while node.id != "scalar" and not node.flow_style and (last := _last_inside(node)) is not None:
            node = last
        if node.id == "scalar":
            return self._page.wrap(node).end
        if node.flow_style:
            return int(node.end_mark.index) + self._page.start
        start, text = self.start, self._page.text[self.start : self._mark_end].rstrip()
        tail = _TAIL.search(text)
        return start + (tail.start() if tail else len(text))

    @property
    def templated(self) -> bool:
        """Whether a template decides any part of it, or adds to it before its first entry or after its last."""
        page = self._page
        if not page.masks:
            return False
        before = page.text[max(0, self.start - _LOOK_BACK) : self.start]
        start = self.start - (len(before) - len(before.rstrip()))
        return page.masked(start, self._mark_end) or page.conditional(self.start)


def _last_inside(node: Any) -> Any:
    """The last entry, unless it is an alias to something elsewhere."""
    if not node.value:
        return None
    last = node.value[-1] if node.id == "sequence" else node.value[-1][1]
    inside = node.start_mark.index <= last.start_mark.index and last.end_mark.index <= node.end_mark.index
    return last if inside and last is not node else None


class Mapping(_Collection):
    """A mapping; merge keys (`<<`) are resolved, explicit keys win, of duplicate keys the last."""

    __slots__ = ()

    def _entries(self) -> dict[str, tuple[Any, Any]]:
        return self._page.entries(self._node)

    def key(self, name: str) -> Scalar | None:
        """The key node itself, to point at."""
        entry = self._entries().get(name)
        return self._scalar(entry[0]) if entry else None

    def items(self) -> Iterator[tuple[Scalar, Node]]:
        """Keys and values, merged ones last."""
        for key, value in self._entries().values():
            yield self._scalar(key), self._page.wrap(value)

    @property
    def names(self) -> KeysView[str]:
        """The keys as text."""
        return self._entries().keys()

    def __contains__(self, name: str) -> bool:
        return name in self._entries()

    def __len__(self) -> int:
        return len(self._entries())

    @property
    def duplicates(self) -> tuple[Duplicate, ...]:
        """Keys written more than once in this mapping itself, but for those that a template makes or may leave out."""
        first: dict[str, Node] = {}
        found = []
        for raw, _ in self._node.value:
            if raw.id != "scalar" or raw.tag == MERGE or self._may_be_another(key := self._page.wrap(raw)):
                continue
            if raw.value in first:
                found.append(Duplicate(raw.value, first[raw.value].span, key.span))
            else:
                first[raw.value] = key
        return tuple(found)

    def _may_be_another(self, key: Node) -> bool:
        """Whether only the rendered template tells what this key is, or whether it is there beside the others."""
        return self._page.masked(key.start, key.end) or self._page.optional_part(self, key.start)

    def _scalar(self, key: Any) -> Scalar:
        scalar = self._page.wrap(key)
        assert isinstance(scalar, Scalar)
        return scalar


def _entries_of(node: Any) -> dict[str, tuple[Any, Any]]:
    """Entries by key, the last of several with one key."""
    entries: dict[str, tuple[Any, Any]] = {}
    for pair in node.value:
        key = pair[0]
        if key.tag == MERGE:
            return _merged(node)
        if key.id == "scalar":
            entries[key.value] = pair
    return entries


def _merged(node: Any) -> dict[str, tuple[Any, Any]]:
    """The same with what `<<` adds. Its sources are visited once each: neither cycles nor repetition cost anything."""
    entries: dict[str, tuple[Any, Any]] = {}
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        mapping = waiting.pop()
        if id(mapping) in seen:
            continue
        seen.add(id(mapping))
        own: dict[str, tuple[Any, Any]] = {}
        sources: list[Any] = []
        for key, value in mapping.value:
            if key.tag == MERGE:
                sources.extend(source for source in _merge_sources(value) if source.id == "mapping")
            elif key.id == "scalar":
                own[key.value] = (key, value)
        for name, entry in own.items():
            entries.setdefault(name, entry)
        waiting.extend(reversed(sources))
    return entries


def _merge_sources(value: Any) -> list[Any]:
    return list(value.value) if value.id == "sequence" else [value]


class Sequence(_Collection):
    """A sequence of nodes."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._node.value)

    def __getitem__(self, index: int) -> Node:
        return self._page.wrap(self._node.value[index])

    def __iter__(self) -> Iterator[Node]:
        for node in self._node.value:
            yield self._page.wrap(node)


class Scalar(Node):
    """A single value; always text, whatever YAML 1.1 would make of it."""

    __slots__ = ()

    @property
    def end(self) -> int:
        if self._node.style not in ("|", ">"):
            return self._mark_end
        start = self.start
        return start + len(self._page.text[start : self._mark_end].rstrip())

    @property
    def _reach(self) -> int:
        """Nothing is written where a template alone on the next line puts it (`key:`, then `{{ toYaml . }}`)."""
        if self._node.value or self.style:
            return self.end
        return self._mark_end + len(_BLANK.match(self._page.text, self._mark_end).group())  # type: ignore[union-attr]

    @property
    def optional_parts(self) -> Stretches:
        """The stretches of the file within the value that a template may leave out or repeat."""
        conditions = self._page.conditions
        within = conditions[bisect_left(conditions, (self.start, 0)) :] if conditions else ()
        return [(first, last) for first, last in within if last <= self.end]

    @property
    def style(self) -> str:
        """`''` plain, `'`, `"`, `|` or `>`."""
        return self._node.style or ""

    @property
    def text(self) -> str:
        """The value; a template in it stands as it was written."""
        if self._page.masks and self.templated:
            return self.fragment().restored()
        return str(self._node.value)

    @property
    def is_null(self) -> bool:
        """Nothing, `~` or `null`, unquoted, and no template either."""
        return self._node.tag == NULL and not self.templated

    def fragment(self) -> Fragment:
        """The value with the place of each of its characters; templates in it stand as runs of MASK."""
        start = self.start
        raw = self._page.text[start : self._mark_end]
        if self._page.json and self.style:
            from shardlint.text import json_text

            offsets = json_text.decode(raw, start)
        else:
            from shardlint.text import scalars

            offsets = scalars.decode(raw, self.style, self._node.value, start)
        return Fragment(self._node.value, self._page.source, offsets)

    def located(self) -> Located[str] | Unknown:
        """The value and its place; Unknown where a template or an application's tag (`!Ref`) decides it."""
        page, start, end, tag = self._page, self.start, self.end, self._node.tag
        span, spelled = page.source.span(start, end), page.source.text[start:end]
        if page.masks and self.templated:
            return Unknown("templated", span, spelled, settle_by="render the template first")
        if not tag.startswith(CORE_TAGS) and tag != "!":
            return Unknown(f"the tag {tag} decides it", span, spelled)
        return Located(str(self._node.value), span, spelled)


_KINDS = {"mapping": Mapping, "sequence": Sequence, "scalar": Scalar}


def walk(node: Node | None) -> Iterator[Node]:
    """Every node from this one down, keys included, in the order of the file, each once however often aliased."""
    if node is None:
        return
    for raw in _walk(node._node):
        yield node._page.wrap(raw)


def duplicates_below(node: Node | None) -> list[Duplicate]:
    """The keys that mappings from this one down have twice, in the order of the file."""
    if node is None:
        return []
    found: list[Duplicate] = []
    seen: set[int] = set()
    waiting = [node._node] if node._node.id != "scalar" else []
    while waiting and len(seen) < WALK_LIMIT:
        raw = waiting.pop()
        if id(raw) in seen:
            continue
        seen.add(id(raw))
        parts = raw.value
        if raw.id == "mapping":
            if len({key.value for key, _ in parts if key.id == "scalar"}) < len(parts):
                mapping = node._page.wrap(raw)
                found += mapping.duplicates if isinstance(mapping, Mapping) else ()
            parts = chain.from_iterable(parts)
        waiting += reversed([part for part in parts if part.id != "scalar"])
    return found


def _walk(root: Any) -> Iterator[Any]:
    """The nodes of the composer, which cost a third of the wrappers."""
    seen: set[int] = set()
    waiting = [root]
    while waiting and len(seen) < WALK_LIMIT:
        raw = waiting.pop()
        if id(raw) in seen:
            continue
        seen.add(id(raw))
        yield raw
        if raw.id == "scalar":
            continue
        below = raw.value if raw.id == "sequence" else [node for pair in raw.value for node in pair]
        waiting += reversed(below)


__all__ = ["MASK", "Duplicate", "Mapping", "Node", "Page", "Scalar", "Sequence", "duplicates_below", "walk"]
