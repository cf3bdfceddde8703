"""Where users keep config.json files: a folder of them, or one JSON file that holds many."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from shardlint.findings import Unknown
from shardlint.findings.records import NamedTuple
from shardlint.front.failures import CannotRun
from shardlint.front.models import CONFIG, files_in, read_text, source_in
from shardlint.text import ModelFiles, Source

MOST_BYTES = 256 * 1024 * 1024  # of one file with many models


class ModelFolder(NamedTuple):
    """A folder of `ORG--NAME.json`, `ORG/NAME.json`, `ORG--NAME/config.json` or `ORG/NAME/config.json`.

    A path such as `/models/llama` goes by the name `models--llama`.
    """

    folder: str

    def texts(self) -> Iterator[tuple[str, str]]:
        """Nothing beyond the models' own files."""
        return iter(())

    def find(self, model_id: str) -> ModelFiles | None:
        parts = [part for part in model_id.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            return None
        for name in dict.fromkeys(("--".join(parts), "/".join(parts))):
            place = os.path.join(self.folder, name)
            if found := files_in(model_id, place, within=self.folder, origin=place):
                return found
            if config := source_in(place + ".json", self.folder):
                return ModelFiles(model_id, config, origin=config.path)
        return None


class ModelFile(NamedTuple):
    """One JSON file `{id: config}` or `{id: {"config.json": config, "hf_quant_config.json": ...}}`."""

    path: str
    text: str
    members: Mapping[str, tuple[int, int]]

    def texts(self) -> Iterator[tuple[str, str]]:
        """The whole file by its path: models stand at their own lines of it."""
        yield self.path, self.text

    @classmethod
    def read(cls, path: str) -> ModelFile:
        """Raises CannotRun where the file is no such JSON."""
        text = read_text(path, MOST_BYTES)
        if isinstance(text, Unknown):
            raise CannotRun(f"--models: {text.reason}")
        try:
            members = _places(text, 0)
        except (ValueError, RecursionError) as failure:
            raise CannotRun(f"--models {path}: not a JSON object of models ({failure})") from None
        if "model_type" in members or "architectures" in members:
            raise CannotRun(
                f"--models {path}: this is the config.json of one model, which does not say its id; "
                'name a folder DIR that has it as DIR/ORG/NAME/config.json, or write {"ORG/NAME": ...} around it'
            )
        return cls(path, text, members)

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


Shelf = ModelFolder | ModelFile


def shelf(path: str) -> Shelf:
    """The folder or file at a path. Raises CannotRun where there is none, or no JSON of models."""
    if os.path.isdir(path):
        return ModelFolder(path)
    if os.path.isfile(path):
        return ModelFile.read(path)
    raise CannotRun(f"--models {path}: no such file or folder")
