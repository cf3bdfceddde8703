"""Nodes of languages that are no YAML: values that were worked out, each character of them with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from shardlint.findings import Located, Unknown
from shardlint.text.nodes import CORE_TAGS, NULL, Node, Page, Scalar
from shardlint.text.source import MASK, Fragment, Source

TEXT = CORE_TAGS + "str"
NUMBER = CORE_TAGS + "int"
FRACTION = CORE_TAGS + "float"
TRUTH = CORE_TAGS + "bool"
UNKNOWN = "!expression"
"""Of a value that is not known, for those who put nodes together and ask for nothing else."""


class _Mark:
    """The part of PyYAML's mark that nodes are asked for."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def scalar(fragment: Fragment, tag: str = TEXT, start: int | None = None, end: int | None = None) -> Any:
    """A value as text; it stands where its first character does, or between `start` and `end` of the source."""
    first = fragment.offsets[0] if start is None else start
    last = (fragment.offsets[-1] if len(fragment.text) else first) if end is None else end
    tag = UNKNOWN if MASK in fragment.text else tag
    node: Any = yaml.ScalarNode(tag, fragment.text, _mark(first), _mark(max(first, last)), style="")
    node.fragment, node.source = fragment, fragment.source
    return node


def unknown(why: str, source: Source, start: int, end: int) -> Any:
    """A value that the file does not tell, written between two places."""
    end = max(end, start + 1) if start < len(source.text) else end
    spelled = source.text[start:end]
    hole = Unknown(why, source.span(start, end), spelled)
    width = max(end - start, 1)
    return scalar(Fragment(MASK * width, source, range(start, start + width + 1), {0: hole}), start=start, end=end)


def mapping(pairs: Iterable[tuple[Any, Any]], source: Source, start: int, end: int) -> Any:
    """A mapping of keys (scalars) to values."""
    node: Any = yaml.MappingNode(CORE_TAGS + "map", list(pairs), _mark(start), _mark(end), flow_style=True)
    node.source = source
    return node


def sequence(items: Iterable[Any], source: Source, start: int, end: int) -> Any:
    node: Any = yaml.SequenceNode(CORE_TAGS + "seq", list(items), _mark(start), _mark(end), flow_style=True)
    node.source = source
    return node


def open_node(root: Any) -> Node:
    """The wrapper of a node that was made here."""
    return _MadePage(root.source, root.source.text).open(root)


def adopt(node: Node) -> Any:
    """The composed node behind a wrapper, which knows its page wherever it is put."""
    raw, page = node._node, node._page
    raw.page = page
    return raw


def below(raw: Any) -> Any:
    """The same for what lies directly below one that was adopted, before it is put elsewhere."""
    page = getattr(raw, "page", None)
    if page is not None and raw.id != "scalar":
        for value in [part for pair in raw.value for part in pair] if raw.id == "mapping" else raw.value:
            value.page = page
    return raw.value


def hole_in(raw: Any) -> Unknown | None:
    """Why a scalar is not known; None where it is, and for every other node."""
    fragment = getattr(raw, "fragment", None)
    if fragment is None or MASK not in fragment.text:
        return None
    return next(iter(fragment.holes.values()), None)


def joined(parts: Sequence[Fragment], source: Source) -> Fragment:
    """Several fragments of one source as one."""
    text: list[str] = []
    offsets: list[int] = []
    holes: dict[int, Unknown] = {}
    for part in parts:
        holes.update({at + len(offsets): hole for at, hole in part.holes.items()})
        text.append(part.text)
        offsets.extend(part.offsets[: len(part.text)])
    end = offsets[-1] + 1 if offsets else parts[0].offsets[0] if parts else 0
    return Fragment("".join(text), source, [*offsets, end], holes)


class _MadePage(Page):
    """Nodes of several files and languages in one tree, each with the page of its own file."""

    __slots__ = ("_pages",)

    def __init__(self, source: Source, text: str) -> None:
        super().__init__(source, text)
        self._pages: dict[int, Page] = {}

    def wrap(self, node: Any) -> Node:
        page = getattr(node, "page", None)
        if page is not None and page is not self:
            return page.wrap(node) if not isinstance(page, _MadePage) else super().wrap(node)
        if hasattr(node, "fragment"):
            return _MadeScalar(node, self._page_of(node.source))
        return _wrapped(node, self._page_of(node.source)) if hasattr(node, "source") else super().wrap(node)

    def below(self, node: Any, path: Iterable[str | int]) -> Node | None:
        """Step by step, as what lies further down may be on another page."""
        here = self.wrap(node)
        for step in path:
            node = here._page.child(here._node, step)
            if node is None:
                return None
            here = here._page.wrap(node)
        return here

    def _page_of(self, source: Source) -> Page:
        if source is self.source:
            return self
        if id(source) not in self._pages:
            other = _MadePage(source, source.text)
            other._pages = self._pages
            self._pages[id(source)] = other
        return self._pages[id(source)]


def _wrapped(node: Any, page: Page) -> Node:
    return Page.wrap(page, node)


class _MadeScalar(Scalar):
    """A scalar whose characters were placed when it was made."""

    __slots__ = ()

    @property
    def start(self) -> int:
        return int(self._node.start_mark.index)

    @property
    def end(self) -> int:
        return int(self._node.end_mark.index)

    @property
    def templated(self) -> bool:
        return hole_in(self._node) is not None

    @property
    def text(self) -> str:
        return self.fragment().restored()

    @property
    def is_null(self) -> bool:
        return bool(self._node.tag == NULL)

    def fragment(self) -> Fragment:
        fragment: Fragment = self._node.fragment
        return fragment

    def located(self) -> Located[str] | Unknown:
        hole = hole_in(self._node)
        if hole is not None:
            return Unknown(hole.reason, self.span, self.spelled, hole.settle_by)
        return Located(self.fragment().text, self.span, self.spelled)


def _mark(index: int) -> Any:
    return _Mark(index)
