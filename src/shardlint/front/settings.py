"""`[tool.shardlint]` in pyproject.toml: what a project says once for all who lint it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.findings import SEVERITIES
from shardlint.findings.records import NamedTuple
from shardlint.front.failures import CannotRun

FILE = "pyproject.toml"
MODELS = (".shardlint", "models")
LISTS = ("select", "ignore")
TEXTS = ("fail-on", "vllm", "hardware", "models")


class ProjectSettings(NamedTuple):
    """The table's values; what it does not say is None. `models` is a path from where the command runs."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    fail_on: str | None = None
    vllm: str | None = None
    hardware: str | None = None
    models: str | None = None


def project_folder(paths: Sequence[str]) -> str | None:
    """The folder whose `.shardlint/models` counts: the nearest above the first path (or where the command runs) that
    has one, up to the repository's top; where none has, the nearest with a pyproject.toml or a .git."""
    project = None
    for folder in _upwards(paths):
        if os.path.isdir(os.path.join(folder, *MODELS)):
            return folder
        top = os.path.exists(os.path.join(folder, ".git"))
        if project is None and (top or os.path.exists(os.path.join(folder, FILE))):
            project = folder
        if top:
            break
    return project


def read_settings(paths: Sequence[str], config: str | None) -> ProjectSettings:
    """The settings in `config`, else in the nearest pyproject.toml that has some, up to the repository's top.

    Raises CannotRun for an unreadable file, an unknown key or a value of the wrong type.
    """
    if config is not None:
        return _read(config) or ProjectSettings()
    for folder in _upwards(paths):
        file = os.path.join(folder, FILE)
        if os.path.isfile(file) and (settings := _read(file)):
            return settings
        if os.path.exists(os.path.join(folder, ".git")):
            break
    return ProjectSettings()


def _upwards(paths: Sequence[str]) -> list[str]:
    first = next((path for path in paths if path != "-"), os.curdir)
    folder = os.path.abspath(first)
    folders = [folder] if os.path.isdir(folder) else []
    while (parent := os.path.dirname(folder)) != folder:
        folders.append(parent)
        folder = parent
    return folders


def _read(file: str) -> ProjectSettings | None:
    """The table of one file, None where it has none."""
    try:
        with open(file, "rb") as opened:
            data = opened.read()
    except OSError as failure:
        raise CannotRun(f"{file}: {failure.strerror}") from None
    if b"shardlint" not in data:  # spares most projects the import and the parsing
        return None
    import tomllib

    try:
        text = data.decode()
        table = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise CannotRun(f"{file}: {failure}") from None
    if not isinstance(table, dict) or "shardlint" not in table:
        return None
    return _settings(table["shardlint"], file, text)


def _failure(file: str, text: str, key: str, message: str) -> CannotRun:
    """What is wrong, with the line of the key as far as a plain search finds it."""
    table = re.search(r"^\s*\[\s*tool\s*\.\s*shardlint\s*\]", text, re.MULTILINE)
    written = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*=", re.MULTILINE)
    found = written.search(text, table.end()) if table else None
    line = f":{text.count(chr(10), 0, found.end()) + 1}" if found else ""
    return CannotRun(f"{file}{line}: [tool.shardlint] {message}")


def _settings(table: Any, file: str, text: str) -> ProjectSettings:
    if not isinstance(table, Mapping):
        raise _failure(file, text, "shardlint", "is not a table")
    for key, value in table.items():
        if wrong := _wrong(key, value):
            raise _failure(file, text, key, wrong)
    models = table.get("models")
    return ProjectSettings(
        select=_words(table.get("select")),
        ignore=_words(table.get("ignore")),
        fail_on=table.get("fail-on"),
        vllm=table.get("vllm"),
        hardware=table.get("hardware"),
        models=None if models is None else os.path.join(os.path.dirname(file), models),
    )


def _wrong(key: str, value: Any) -> str | None:
    """What is wrong with one key, in words; None where nothing is."""
    if key not in LISTS + TEXTS:
        return f"has no key {key}; there are {', '.join(LISTS + TEXTS)}"
    if key in LISTS and not (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        return f"{key} is a list of strings, not {value!r}"
    if key in TEXTS and not isinstance(value, str):
        return f"{key} is a string, not {value!r}"
    if key == "fail-on" and value not in SEVERITIES:
        return f"fail-on is one of {', '.join(SEVERITIES)}, not {value}"
    return None


def _words(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
