"""Which paths below a folder git ignores: the .gitignore files on the way, each with the folder that it speaks for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardlint.findings.records import NamedTuple

if TYPE_CHECKING:
    from shardlint.front.gitignore import Ignores

MOST_BYTES = 1024 * 1024  # of one .gitignore


class Scope(NamedTuple):
    """One .gitignore file: `before + path[skip:]` is a path as seen from its folder."""

    ignores: Ignores
    skip: int
    before: str = ""


def is_ignored(path: str, is_folder: bool, scopes: Iterable[Scope]) -> bool:
    """Whether the deepest .gitignore that speaks of `path` ignores it; `scopes` stand from the top down."""
    for scope in reversed([*scopes]):
        verdict = scope.ignores.verdict(scope.before + path[scope.skip :], is_folder)
        if verdict is not None:
            return verdict
    return False


def own_scope(prefix: str) -> list[Scope]:
    """The .gitignore in the folder whose paths begin with `prefix` (empty, or ending in a slash)."""
    return _scope(prefix + ".gitignore", len(prefix))


def inherited_scopes(prefix: str) -> list[Scope]:
    """What holds in that folder from above: .git/info/exclude, then the .gitignore files of its parents.

    Only inside a git repository: elsewhere nothing above a folder has a say.
    """
    top = start = os.path.abspath(prefix or os.curdir)
    parents: list[str] = []
    while not os.path.exists(os.path.join(top, ".git")):
        top, child = os.path.dirname(top), top
        if top == child:
            return []
        parents.append(top)
    scopes = _scope(os.path.join(top, ".git", "info", "exclude"), len(prefix), _from(top, start))
    for parent in reversed(parents):
        scopes += _scope(os.path.join(parent, ".gitignore"), len(prefix), _from(parent, start))
    return scopes


def _from(parent: str, folder: str) -> str:
    return "" if parent == folder else os.path.relpath(folder, parent).replace(os.sep, "/") + "/"


def _scope(file: str, skip: int, before: str = "") -> list[Scope]:
    try:
        with open(file, "rb") as opened:
            text = opened.read(MOST_BYTES).decode(errors="surrogateescape")
    except OSError:  # not there, or not readable for git either
        return []
    from shardlint.front.gitignore import parse  # only where there is such a file: it has its price at start-up

    return [Scope(parse(text), skip, before)]
