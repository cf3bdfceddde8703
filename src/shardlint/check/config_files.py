"""The files of flags (`--config FILE`) that the commands of one manifest name."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping as MountPaths
from functools import lru_cache

from shardlint import manifests
from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Unknown
from shardlint.text import Library, Mapping, Source, documents
from shardlint.text.source import Inset, beside


class ConfigFiles:
    """Reads them, and keeps in `read` the paths of those that stand for themselves."""

    def __init__(self, source: Source, library: Library) -> None:
        self.read: set[str] = set()
        self.reads_itself = False
        self._source = source
        self._library = library

    def entries(self, launch: Launch, named: Located[str]) -> tuple[ConfigEntry, ...] | Unknown:
        """The keys of the file that a word of a command names."""
        file = self._file(_on_host(named.value, launch.mounts))
        if isinstance(file, Unknown):
            return file
        parsed = documents(file)
        roots = [document.root for document in parsed.documents if document.root is not None]
        if parsed.problems or len(roots) != 1 or not isinstance(roots[0], Mapping):
            return Unknown(f"{named.value} is no YAML of one mapping", named.span, named.spelled)
        return manifests.arguments(roots[0])

    def _file(self, path: str) -> Source | Unknown:
        inside = manifests.mounted(path, self._source)
        if inside is not None:
            return Inset(inside)
        whole = beside(self._source.path, path)
        if whole == self._source.path:
            self.reads_itself = True
            return self._source
        file = self._library.sibling(whole)
        if isinstance(file, Source):
            self.read.add(normal(file.path))
        return file


def _on_host(path: str, mounts: MountPaths[str, str]) -> str:
    """A container's path as the host has it, by the mount that lies nearest."""
    for target in sorted(mounts, key=len, reverse=True):
        if path == target or path.startswith(target + "/"):
            return mounts[target] + path[len(target) :]
    return path


@lru_cache(maxsize=1024)
def normal(path: str) -> str:
    """A path in the one spelling by which files are told apart."""
    return posixpath.normpath(path.replace("\\", "/"))
