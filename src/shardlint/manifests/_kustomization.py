"""A kustomization as kustomize builds it: resources, patches, generated ConfigMaps, images, replicas, replacements.

Names are left as the resources have them; what cannot be had (resources on other hosts, files that are not beside)
is left out, and what is left is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Problem, Unknown
from shardlint.manifests import _patches
from shardlint.manifests._inner import documents_in
from shardlint.manifests._objects import objects_of_file
from shardlint.text.assembled import TooLarge, Tree, assemble
from shardlint.text.documents import Document, documents
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Fragment, Library, Source, beside

_LINE = re.compile(r"^[ \t]*(?!#)([A-Za-z_][\w.-]*)=([^\r\n]*)", re.MULTILINE)
_DEEPEST = 12
"""Kustomizations that are built on kustomizations."""
_MOST = 300
"""Kustomizations of one build: some that name each other twice would double with every level."""
FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_CHANGES = (
    "patches", "patchesStrategicMerge", "patchesJson6902", "images", "replicas", "configMapGenerator", "replacements",
    "components",
)  # fmt: skip


def launches_of(document: Document, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of what a kustomization builds, where it changes anything."""
    root = document.root
    if not isinstance(root, Mapping) or not any(root.get(name) is not None for name in _CHANGES):
        return
    built = _Build(library).objects(root, document.source, 0)
    try:
        inner = assemble(built, document.source)
    except TooLarge:
        yield Problem(root.span, "What this builds grows beyond all measure: aliases inside aliases.")
        return
    for one in inner:
        found = manifests.launches(one, library)
        yield from found.problems
        yield from (launch._replace(form=form) for launch in found.launches)


class _Build:
    """One build; each kustomization is built once for each way that leads to it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._left = _MOST

    def objects(self, root: Mapping, source: Source, depth: int) -> list[Tree]:
        """The objects of a kustomization, changed as it says."""
        self._left -= 1
        found: list[Tree] = []
        for name in ("resources", "bases"):
            for path in _texts(root.get(name)):
                found += self._resource(beside(source.path, path), depth)
        found += self._config_maps(root, source)
        for path in _texts(root.get("components")):
            for component, origin in self._kustomizations(beside(source.path, path)):
                found = self._changed(found, component, origin)
        return self._changed(found, root, source)

    def _resource(self, path: str, depth: int) -> list[Tree]:
        file = self._library.sibling(path)
        if isinstance(file, Source):
            return [item for item, _ in objects_of_file(file)]
        if depth >= _DEEPEST or self._left <= 0:
            return []
        return [one for root, source in self._kustomizations(path) for one in self.objects(root, source, depth + 1)]

    def _kustomizations(self, folder: str) -> Iterator[tuple[Mapping, Source]]:
        for name in FILE_NAMES:
            file = self._library.sibling(beside(folder.rstrip("/") + "/", name))
            if isinstance(file, Source):
                for document in documents(file).documents:
                    if isinstance(document.root, Mapping):
                        yield document.root, file
                return

    def _changed(self, objects: list[Tree], root: Mapping, source: Source) -> list[Tree]:
        for patch in self._patches(root, source):
            objects = patch.applied(objects)
        for image in _members(root.get("images")):
            objects = [_patches.with_image(one, image) for one in objects]
        for copies in _members(root.get("replicas")):
            objects = [_patches.with_replicas(one, copies) for one in objects]
        for replacement in _members(root.get("replacements")):
            objects = _patches.replaced(objects, replacement)
        return objects

    def _patches(self, root: Mapping, source: Source) -> Iterator[_patches.Patch]:
        """Every patch, whichever way it is written."""
        for entry in _members(root.get("patchesStrategicMerge")):
            if isinstance(entry, Scalar):
                for tree in self._texts_of(entry, source):
                    yield _patches.Patch(tree, None)
        for name in ("patches", "patchesJson6902"):
            for entry in _members(root.get(name)):
                written, path = entry.get("patch"), entry.get("path")
                target = entry.get("target")
                found = _inline(written) if isinstance(written, Scalar) else []
                if not found and isinstance(path, Scalar):
                    found = self._file(beside(source.path, path.text.strip()))
                for tree in found:
                    yield _patches.Patch(tree, target)

    def _texts_of(self, entry: Scalar, source: Source) -> list[Tree]:
        """A patch by the path of its file, or the patch itself."""
        inline = "\n" in entry.text.strip()
        return _inline(entry) if inline else self._file(beside(source.path, entry.text.strip()))

    def _file(self, path: str) -> list[Tree]:
        file = self._library.sibling(path)
        found = documents(file).documents if isinstance(file, Source) else ()
        return [document.root for document in found if document.root is not None]

    def _config_maps(self, root: Mapping, source: Source) -> Iterator[Tree]:
        for generator in _members(root.get("configMapGenerator")):
            data: dict[str, Tree] = {}
            for path in [*_texts(generator.get("envs")), *_texts(generator.get("env"))]:
                data |= _lines(self._library.sibling(beside(source.path, path)))
            for literal in _scalars(generator.get("literals")):
                name, equals, _ = literal.text.partition("=")
                fragment = literal.fragment()
                data[name] = _unquoted(fragment.part(len(name) + len(equals), len(fragment.text)))
            for entry in _texts(generator.get("files")):
                name, _, path = entry.rpartition("=")
                file = self._library.sibling(beside(source.path, path))
                if isinstance(file, Source):
                    data[name or path.rpartition("/")[2]] = Fragment.whole(file)
            named = generator.get("name")
            if named is not None:
                yield {"kind": _made("ConfigMap", generator), "metadata": {"name": named}, "data": data}


def _made(text: str, near: Node) -> Fragment:
    """Text that nobody wrote, at the place of what it is made for."""
    return Fragment(text, near.source, [near.start] * (len(text) + 1))


def _lines(file: Source | Unknown) -> dict[str, Tree]:
    """The variables of a file, one a line."""
    found = _LINE.finditer(file.text) if isinstance(file, Source) else ()
    return {line[1]: _unquoted(_stretch(line, file)) for line in found if isinstance(file, Source)}


def _stretch(line: re.Match[str], file: Source) -> Fragment:
    start, end = line.span(2)
    return Fragment(line[2], file, range(start, end + 1))


def _unquoted(value: Fragment) -> Fragment:
    text = value.text
    return value.part(1, len(text) - 1) if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else value


def _inline(patch: Scalar) -> list[Tree]:
    return [root for document in documents_in(patch).documents if (root := document.root) is not None]


def _members(node: Node | None) -> list[Node]:
    return list(node) if isinstance(node, Sequence) else []


def _scalars(node: Node | None) -> list[Scalar]:
    """A scalar, or those of a sequence."""
    found = [node] if isinstance(node, Scalar) else _members(node)
    return [one for one in found if isinstance(one, Scalar) and not one.is_null]


def _texts(node: Node | None) -> list[str]:
    return [one.text.strip() for one in _scalars(node)]
