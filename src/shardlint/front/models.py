"""Where a model's config.json lies: a folder of them, or one JSON file that holds many."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardlint.findings import Unknown
from shardlint.front.failures import CannotRun
from shardlint.front.files import is_inside
from shardlint.text import ModelFiles, Source

CONFIG = "config.json"
SIDE_FILES = ("hf_quant_config.json", "quantize_config.json", "quant_config.json", "generation_config.json")
"""What a model's repository says beside config.json that has a bearing on the layout or its quantisation."""

MOST_BYTES = 4 * 1024 * 1024  # the largest config.json met (per-layer quantisation lists) has some 600 KiB
MOST_BYTES_OF_ALL = 256 * 1024 * 1024  # of one file with many models


def read_text(path: str, most_bytes: int = MOST_BYTES) -> str | Unknown:
    """A regular UTF-8 file of bearable size."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
                return Unknown(f"{path} is no regular file of at most {most_bytes // 1024 // 1024} MiB")
            return file.read(most_bytes).decode("utf-8-sig")
    except OSError as failure:
        return Unknown(f"{path} cannot be read: {failure.strerror}")
    except UnicodeDecodeError:
        return Unknown(f"{path} is no UTF-8 text")


def _without_waiting(path: str, flags: int) -> int:
    """A named pipe that nobody writes to must not hold up the run."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def files_in(model_id: str, folder: str, *, within: str, origin: str) -> ModelFiles | None:
    """The model's files in a folder; none of them may lie outside of `within`, links followed."""
    config = _source(os.path.join(folder, CONFIG), within)
    if config is None:
        return None
    beside = ((name, _source(os.path.join(folder, name), within)) for name in SIDE_FILES)
    return ModelFiles(model_id, config, tuple((name, source) for name, source in beside if source), origin)


def _source(path: str, within: str) -> Source | None:
    if not is_inside(os.path.realpath(path), os.path.realpath(within)):
        return None
    text = read_text(path)
    return Source(path, text) if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder of `ORG--NAME.json`, `ORG/NAME.json`, `ORG--NAME/config.json` or `ORG/NAME/config.json`.

    A path such as `/models/llama` goes by the name `models--llama`.
    """

    folder: str

    def find(self, model_id: str) -> ModelFiles | None:
        parts = [part for part in model_id.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            return None
        for name in dict.fromkeys(("--".join(parts), "/".join(parts))):
            place = os.path.join(self.folder, name)
            if found := files_in(model_id, place, within=self.folder, origin=place):
                return found
            if config := _source(place + ".json", self.folder):
                return ModelFiles(model_id, config, origin=config.path)
        return None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One JSON file `{id: config}` or `{id: {"config.json": config, "hf_quant_config.json": ...}}`."""

    path: str
    text: str
    members: Mapping[str, tuple[int, int]]

    @classmethod
    def read(cls, path: str) -> ModelFile:
        """Raises CannotRun where the file is no such JSON."""
        text = read_text(path, MOST_BYTES_OF_ALL)
        if isinstance(text, Unknown):
            raise CannotRun(f"--models: {text.reason}")
        try:
            return cls(path, text, _places(text, 0))
        except (ValueError, RecursionError) as failure:
            raise CannotRun(f"--models {path}: not a JSON object of models ({failure})") from None

    def find(self, model_id: str) -> ModelFiles | None:
        if model_id not in self.members:
            return None
        start, end = self.members[model_id]
        inner = _places(self.text, start) if self.text.startswith("{", start) else {}
        files = inner if CONFIG in inner else {CONFIG: (start, end)}
        side_files = tuple((name, self._cut(*place)) for name, place in files.items() if name != CONFIG)
        return ModelFiles(model_id, self._cut(*files[CONFIG]), side_files, origin=self.path)

    def _cut(self, start: int, end: int) -> Source:
        """One value of the file, at the line and column where it stands there."""
        line_start = self.text.rfind("\n", 0, start) + 1
        before = "\n" * self.text.count("\n", 0, start) + " " * (start - line_start)
        return Source(self.path, before + self.text[start:end])


def _places(text: str, at: int) -> dict[str, tuple[int, int]]:
    return {name: (start, end) for name, start, end in _members(text, at)}


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """The members of the JSON object at `at`, each with the place of its value. Raises ValueError."""
    at = _expect(text, at, "{")
    decoder = json.JSONDecoder()
    if text.startswith("}", _blank(text, at)):
        return
    while True:
        name, at = decoder.raw_decode(text, _expect(text, at, '"') - 1)
        start = _blank(text, _expect(text, at, ":"))
        _value, at = decoder.raw_decode(text, start)
        yield name, start, at
        at = _blank(text, at)
        if text.startswith("}", at):
            return
        at = _expect(text, at, ",")


def _blank(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def _expect(text: str, at: int, character: str) -> int:
    at = _blank(text, at)
    if not text.startswith(character, at):
        raise ValueError(f"expected {character!r} at character {at}")
    return at + 1
