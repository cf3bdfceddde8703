"""Which files are read: the named ones, and those in folders that have to do with serving a language model."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from typing import BinaryIO

from shardlint.findings import FileNote, Problem, Span
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple
from shardlint.front.failures import CannotRun
from shardlint.front.ignored import Scope, inherited_scopes, is_ignored, own_scope
from shardlint.text import Source

STANDARD_INPUT = "-"
MOST_BYTES = 4 * 1024 * 1024  # the largest manifests met are rendered charts of some 300 KiB
HEAD_BYTES = 8 * 1024

SKIPPED_FOLDERS = frozenset(
    (".git", ".hg", ".svn", ".tox", ".nox", ".venv", "node_modules", "__pycache__", ".shardlint", ".mypy_cache")
)

ENGINE_WORDS = (
    b"llm",
    b"sglang",
    b"tensorrt",
    b"text-generation",
    b"tgi",
    b"tensor-parallel",
    b"tensor_parallel",
    b"tensorparallel",
    b"lmdeploy",
    b"nvcr.io/nim",
    b"dynamo",
)
"""In lower case. A file without any of them starts no engine that we know, whatever else it holds."""

PYTHON_CALLS = (b"LLM(", b"Args(", b"Engine(")
"""What a Python file has to hold beside them: most of those that speak of an engine only talk to one."""


_MAGIC = frozenset("*?[")


class Found(NamedTuple):
    """What was read; what was not, and why; what is wrong with files as files."""

    sources: list[Source]
    notes: list[FileNote]
    problems: list[Problem]


def find(paths: Sequence[str], patterns: Iterable[str], *, force_exclude: bool = False) -> Found:
    """Read the files that `paths` name, and those below its folders whose names match one of `patterns`.

    Each file is read once, however often it is named, and in the order of the paths' names, not of the arguments.
    `force_exclude` passes over a named file too where a search of its folder would: git ignores it, or nothing in it
    has to do with serving a language model.  Raises CannotRun for a path that is not there
    and for a standard input with nothing in it.
    """
    names = _Names(patterns)
    roots = [os.path.realpath(path) for path in paths if path != STANDARD_INPUT]
    search = _Search(names, roots, force_exclude)
    for path in sorted(set(paths)):
        search.look_at(path)
    return search.found


class _Names:
    """Patterns of names as one question; most are endings, which are compared in no time."""

    def __init__(self, patterns: Iterable[str]) -> None:
        wanted = sorted(set(patterns))
        endings = [pattern for pattern in wanted if pattern[:1] == "*" and not _MAGIC.intersection(pattern[1:])]
        self._endings = tuple(pattern[1:] for pattern in endings)
        self._others = Pattern("|".join(translate(pattern) for pattern in wanted if pattern not in endings) or r"\Z.")

    def have(self, name: str) -> bool:
        """Whether a name matches one of them."""
        return name.endswith(self._endings) or self._others.match(name) is not None


class _Search:
    def __init__(self, names: _Names, roots: list[str], force_exclude: bool) -> None:
        self.names = names
        self.roots = roots
        self.force_exclude = force_exclude
        self.found = Found([], [], [])
        self.seen: set[tuple[int, int]] = set()
        self.scopes: dict[str, list[Scope] | None] = {}

    def look_at(self, path: str) -> None:
        """One path of the command line."""
        if path == STANDARD_INPUT:
            text = sys.stdin.buffer.read(MOST_BYTES + 1)
            if not text.strip():  # `helm template ... | shardlint -` where helm has failed
                raise CannotRun("nothing came through standard input")
            self._take(path, text, named=True)
        elif os.path.isdir(path):
            for file in self._walk(path):
                self._read(file, named=False)
        elif os.path.exists(path):
            if not (self.force_exclude and self._is_passed_over(path)):
                self._read(path, named=not self.force_exclude)
        else:
            raise CannotRun(f"{path}: no such file or folder")

    def _is_passed_over(self, path: str) -> bool:
        """Whether a search from where the command runs (else of the file's own folder) does not come to a file."""
        path = os.path.relpath(path)
        scopes = self._scopes_in(os.path.join(os.path.dirname(path), ""))
        return scopes is None or is_ignored(path, False, scopes)

    def _scopes_in(self, prefix: str) -> list[Scope] | None:
        """What git ignores in the folder whose paths begin with `prefix`; None where the folder is not searched."""
        if prefix not in self.scopes:
            self.scopes[prefix] = self._find_scopes(prefix)
        return self.scopes[prefix]

    def _find_scopes(self, prefix: str) -> list[Scope] | None:
        if not prefix or prefix.startswith(os.pardir + "/"):
            return inherited_scopes(prefix) + own_scope(prefix)
        parent, name = os.path.split(prefix.rstrip("/"))
        above = self._scopes_in(os.path.join(parent, ""))
        if above is None or name in SKIPPED_FOLDERS or is_ignored(prefix.rstrip("/"), True, above):
            return None
        return above + own_scope(prefix)

    def _walk(self, root: str) -> Iterator[str]:
        """The files below a folder in the order of their names, less what git ignores."""
        prefix = "" if root == os.curdir else root.rstrip("/") + "/"
        stack = [(prefix, inherited_scopes(prefix))]
        while stack:
            folder, above = stack.pop()
            scopes = above + own_scope(folder)
            below = []
            for entry in self._entries(folder):
                path = folder + entry.name
                if entry.is_symlink():
                    self._note_link(path)
                elif entry.is_dir():
                    if entry.name not in SKIPPED_FOLDERS and not is_ignored(path, True, scopes):
                        below.append((path + "/", scopes))
                elif self.names.have(entry.name) and entry.is_file() and not is_ignored(path, False, scopes):
                    yield path
            stack.extend(reversed(below))

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder or os.curdir) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as failure:
            self._note(folder, f"cannot be opened: {failure.strerror}")
            return []

    def _note_link(self, path: str) -> None:
        """A link inside the scanned folders is met under its own name; one that leads out of them is not followed."""
        if self.names.have(os.path.basename(path)) or os.path.isdir(path):
            target = os.path.realpath(path)
            if not any(is_inside(target, root) for root in self.roots):
                self._note(path, "a symbolic link that leads out of the scanned folders; name it to read it")

    def _read(self, path: str, *, named: bool) -> None:
        try:
            with open(path, "rb") as file:
                data = None if self._seen_before(file) else _bytes_of(file)
        except OSError as failure:
            self._cannot_read(path, failure)
            return
        if data is not None:
            self._take(path, data, named=named)

    def _cannot_read(self, path: str, failure: OSError) -> None:
        why = f"the file cannot be read: {failure.strerror}"
        self.found.problems.append(Problem(at=Span(path, 1, 1, 1, 1), message=why))
        self._note(path, f"cannot be read: {failure.strerror}")

    def _seen_before(self, file: BinaryIO) -> bool:
        status = os.fstat(file.fileno())
        key = (status.st_dev, status.st_ino)
        seen = key in self.seen
        self.seen.add(key)
        return seen

    def _take(self, path: str, data: bytes, *, named: bool) -> None:
        """Keep what may start an engine; a named file is never passed over in silence."""
        if _is_binary(data):
            if named:
                self._note(path, "a binary file")
        elif len(data) > MOST_BYTES:
            self._note(path, f"larger than {MOST_BYTES // 1024 // 1024} MiB")
        elif named or (speaks_of_engines(data) and (not path.endswith(".py") or _calls_engines(data))):
            self._decode(path, data)

    def _decode(self, path: str, data: bytes) -> None:
        data = data.removeprefix(b"\xef\xbb\xbf")  # no part of the text: editors do not count it as a column
        try:
            self.found.sources.append(_source(path, data.decode(_encoding(data))))
        except UnicodeDecodeError as failure:
            self.found.problems.append(_undecodable(path, data, failure))
            self._note(path, f"not {failure.encoding.upper()} text")

    def _note(self, path: str, reason: str) -> None:
        self.found.notes.append(FileNote(path, None, reason))


def _source(path: str, text: str) -> Source:
    """Standard input may be a rendered chart, whose comments name the files that it holds."""
    if path == STANDARD_INPUT and "\n# Source: " in text:
        from shardlint.text.rendered import Rendered

        return Rendered(path, text)
    return Source(path, text)


def speaks_of_engines(data: bytes) -> bool:
    """Whether a file's bytes hold a word that has to do with serving a language model."""
    lowered = (data.replace(b"\0", b"") if b"\0" in data else data).lower()  # UTF-16 text has one in every character
    return any(word in lowered for word in ENGINE_WORDS)


def _calls_engines(data: bytes) -> bool:
    return any(call in data for call in PYTHON_CALLS)


def is_inside(path: str, folder: str) -> bool:
    """Whether a real path is `folder` or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _bytes_of(file: BinaryIO) -> bytes:
    """The content, up to one byte more than is read, so that what is too large can be told; a binary's head only."""
    head = file.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES or _is_binary(head):
        return head
    return head + file.read(MOST_BYTES + 1 - len(head))


def _encoding(data: bytes) -> str:
    return "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:HEAD_BYTES] and _encoding(data) != "utf-16"


def _undecodable(path: str, data: bytes, failure: UnicodeDecodeError) -> Problem:
    before = data[: failure.start].decode(_encoding(data), errors="replace")
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return Problem(
        at=Span(path, line, column, line, column + 1),
        message=f"byte 0x{data[failure.start]:02x} is no {failure.encoding.upper()} text ({failure.reason})",
        help=("save the file as UTF-8",),
    )
