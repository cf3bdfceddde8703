"""Kubernetes objects that stand in another file of the same folder."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.manifests._objects import beside, of_kind_in_file, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library, Source
from shardlint.text.source import beside as path_beside

MAX_NEIGHBOURS = 200
"""Files of a folder that are searched for an object; one whose text does not have its name is not parsed."""


def near(document: Document, library: Library | None, name: str, *kinds: str) -> Mapping | None:
    """The object of a kind and name in the same file, else in another file of its folder."""
    found = beside(document, name, *kinds)
    if found is not None or not name or library is None:
        return found
    return next(_named(document.source.path, library, name, kinds), None)


def _named(path: str, library: Library, name: str, kinds: tuple[str, ...]) -> Iterator[Mapping]:
    for source in _neighbours(path, library):
        if source.holds(name) and any(source.holds(own) for own in kinds):
            for item in of_kind_in_file(source, *kinds):
                if text(item.get("metadata", "name")) == name:
                    yield item


def _neighbours(path: str, library: Library) -> Iterator[Source]:
    folder, _, own = path.replace("\\", "/").rpartition("/")
    names = [found for found in library.names_in(folder) if found != own and found.endswith((".yaml", ".yml", ".json"))]
    for found in names[:MAX_NEIGHBOURS]:
        if isinstance(source := library.sibling(path_beside(path, found)), Source):
            yield source
