"""`.shardlint/models`: what `shardlint models add` keeps, in a form that a person can review."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from shardlint.findings import Unknown
from shardlint.front.failures import CannotRun
from shardlint.front.files import is_inside
from shardlint.front.models import CONFIG, MOST_BYTES, SIDE_FILES, read_text
from shardlint.front.settings import MODELS, project_folder

SOURCE = "source.json"
"""Which model, and at which commit."""

_ID = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,254}", re.ASCII)


def id_and_revision(word: str) -> tuple[str, str | None]:
    """`ORG/NAME` or `ORG/NAME@REVISION`. Raises CannotRun for what the hub allows no model to be called."""
    model_id, at, revision = word.partition("@")
    if not _ID.fullmatch(model_id) or ".." in model_id or "--" in model_id or model_id.endswith((".", "-", ".git")):
        raise CannotRun("not the id of a model, such as Qwen/Qwen3-8B")
    if at and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise CannotRun("after the @ stands no revision: a branch, a tag or a commit")
    return model_id, revision or None


class ModelStore:
    """The folder of the project in which models are kept."""

    def __init__(self) -> None:
        self.folder = os.path.relpath(os.path.join(project_folder(()) or os.curdir, *MODELS))

    def folder_of(self, model_id: str) -> str:
        """Where a model's files are. Raises CannotRun where links lead elsewhere."""
        folder = os.path.join(self.folder, model_id.replace("/", "--"))
        if not is_inside(os.path.realpath(folder), os.path.realpath(self.folder)):
            raise CannotRun(f"{folder} leads out of {self.folder}")
        return folder

    def keep(self, model_id: str, revision: str, files: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Write a model's files, and take away those that it has no more; the names, in the order of writing.

        Raises CannotRun where that cannot be done.
        """
        folder = self.folder_of(model_id)
        kept = {**files, SOURCE: {"id": model_id, "revision": revision}}
        texts = {name: _text(name, kept[name]) for name in (CONFIG, *SIDE_FILES, SOURCE) if name in kept}
        try:
            os.makedirs(folder, exist_ok=True)
            for name in {CONFIG, *SIDE_FILES, SOURCE} - texts.keys():
                _remove(os.path.join(folder, name))
            for name, text in texts.items():
                _write(os.path.join(folder, name), text)
        except OSError as failure:
            raise CannotRun(f"{failure.filename or folder}: {failure.strerror}") from None
        return list(texts)


def revision_in(folder: str) -> str | None:
    """The commit that a kept model's files are of; None where nothing (sensible) says so."""
    text = read_text(os.path.join(folder, SOURCE))
    try:
        source = {} if isinstance(text, Unknown) else json.loads(text)
    except (ValueError, RecursionError):
        return None
    revision = source.get("revision") if isinstance(source, dict) else None
    return revision if isinstance(revision, str) and re.fullmatch(r"[0-9a-f]{7,64}", revision) else None


def _text(name: str, value: Mapping[str, Any]) -> str:
    """JSON for people: the file's own order, one entry a line; ASCII, so that a review shows what is there."""
    text = json.dumps(value, indent=2) + "\n"
    if len(text) > MOST_BYTES:
        raise CannotRun(f"{name} takes more than {MOST_BYTES // 1024 // 1024} MiB")
    return text


def _write(path: str, text: str) -> None:
    """All or nothing; a link in the file's place is replaced, not followed."""
    part = path + ".part"
    _remove(part)
    with open(part, "x", encoding="ascii", newline="\n") as file:
        file.write(text)
    os.replace(part, path)


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.remove(path)
