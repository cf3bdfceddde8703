"""The library that reads the disk: files that a manifest names, and models that are known on this machine.

A manifest decides which names are asked for, so every name is hostile: nothing outside the allowed folders is
opened, whatever dots and links it holds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardlint.findings import Unknown
from shardlint.findings.patterns import Pattern
from shardlint.front.files import STANDARD_INPUT, is_inside
from shardlint.front.models import files_in, read_text
from shardlint.front.settings import MODELS
from shardlint.text import Library, ModelFiles, Source

if TYPE_CHECKING:
    from shardlint.front.shelves import Shelf


class DiskLibrary(Library):
    """Answers what a check may ask of the disk; each answer is kept, so a model is read once."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        models: str | None,
        project: str | None,
        environ: Mapping[str, str],
    ) -> None:
        """`paths`: what is linted; `models`: the option; `project`: the folder whose `.shardlint/models` counts.

        Raises CannotRun where `models` cannot be read.
        """
        self._roots = _roots(paths)
        self._shelves = _shelves(models, project)
        self._hub = _hub_cache(environ)
        self._models: dict[str, ModelFiles | Unknown] = {}
        self._places: dict[str, str] = {}
        self._siblings: dict[str, Source | Unknown] = {}
        self._names: dict[str, tuple[str, ...]] = {}

    def texts(self) -> Iterator[tuple[str, str]]:
        """What was read so far, by path, for excerpts."""
        for sibling in self._siblings.values():
            if isinstance(sibling, Source):
                yield sibling.path, sibling.text
        for files in self._models.values():
            if isinstance(files, ModelFiles):
                yield from ((source.path, source.text) for _, source in (("", files.config), *files.side_files))
        for shelf in self._shelves.values():
            yield from shelf.texts()

    def sibling(self, path: str) -> Source | Unknown:
        """A text file inside the scanned folders, by its path from where the command runs."""
        if path not in self._siblings:
            self._siblings[path] = self._read_sibling(path)
        return self._siblings[path]

    def _read_sibling(self, path: str) -> Source | Unknown:
        if not self._is_allowed(path):
            return Unknown(f"{path} lies outside of the scanned folders", settle_by="scan the folder that holds it")
        text = read_text(path)
        return text if isinstance(text, Unknown) else Source(path, text)

    def names_in(self, folder: str) -> tuple[str, ...]:
        """The names of the files in a folder inside the scanned ones, sorted."""
        if folder not in self._names:
            self._names[folder] = self._list(folder)
        return self._names[folder]

    def _list(self, folder: str) -> tuple[str, ...]:
        if not self._is_allowed(folder):
            return ()
        try:
            with os.scandir(folder or os.curdir) as entries:
                return tuple(sorted(entry.name for entry in entries if entry.is_file()))
        except OSError:
            return ()

    def _is_allowed(self, path: str) -> bool:
        return "\0" not in path and any(is_inside(os.path.realpath(path), root) for root in self._roots)

    def model(self, model_id: str) -> ModelFiles | Unknown:
        """The first of: `--models`, the project's `.shardlint/models`, a folder of that name, the hub's cache."""
        if model_id not in self._models:
            self._models[model_id] = self._find_model(model_id)
        return self._models[model_id]

    def _find_model(self, model_id: str) -> ModelFiles | Unknown:
        nowhere = Unknown(f"no config.json of {model_id} is on this machine", settle_by="--models with its config.json")
        if not model_id or "\0" in model_id:
            return nowhere
        for place, files in self._looks(model_id):
            if files:
                self._places[model_id] = place
                return files
        return nowhere

    def place_of(self, model_id: str) -> str | None:
        """In which kind of place a model's files are: `--models`, `.shardlint/models`, ...; None for no files."""
        self.model(model_id)
        return self._places.get(model_id)

    def _looks(self, model_id: str) -> Iterator[tuple[str, ModelFiles | None]]:
        for place, shelf in self._shelves.items():
            yield place, shelf.find(model_id)
        yield LOCAL_FOLDER, self._local_folder(model_id)
        yield HUB_CACHE, self._cached(model_id)

    def _local_folder(self, model_id: str) -> ModelFiles | None:
        """A model folder by its path: an absolute one as it stands, a relative one below a scanned folder."""
        if os.path.isabs(model_id):
            return files_in(model_id, model_id, within=model_id, origin=model_id)
        for root in self._roots:
            folder = os.path.join(root, model_id)
            if found := files_in(model_id, folder, within=root, origin=model_id):
                return found
        return None

    def _cached(self, model_id: str) -> ModelFiles | None:
        """The hub's cache, read without its library: refs/main names the folder below snapshots/."""
        if not self._hub or not _HUB_ID.fullmatch(model_id):
            return None
        home = os.path.join(self._hub, "models--" + model_id.replace("/", "--"))
        revision = _revision(home)
        if revision is None:
            return None
        folder = os.path.join(home, "snapshots", revision)
        return files_in(model_id, folder, within=home, origin="the Hugging Face cache")


GIVEN, KEPT, LOCAL_FOLDER, HUB_CACHE = "--models", ".shardlint/models", "local folder", "Hugging Face cache"
"""The kinds of places in which a model's files may be, in the order in which they are looked through."""

_HUB_ID = Pattern(r"\w[\w.-]*(?:/\w[\w.-]*)?", re.ASCII)
_COMMIT = Pattern(r"[0-9a-f]{7,64}")


def _roots(paths: Sequence[str]) -> list[str]:
    """The folders below which a manifest may name files.

    A named file counts for the folder where the command runs if it lies below that, so that naming each file (as
    hooks do) tells the same as scanning the folder.
    """
    here = os.path.realpath(os.curdir)
    roots = []
    for path in paths:
        real = here if path == STANDARD_INPUT else os.path.realpath(path)
        if not os.path.isdir(real):
            real = here if is_inside(real, here) else os.path.dirname(real)
        if real not in roots:
            roots.append(real)
    return roots


def _shelves(models: str | None, project: str | None) -> dict[str, Shelf]:
    kept = os.path.relpath(os.path.join(project, *MODELS)) if project else ""
    places = {GIVEN: models, KEPT: kept if os.path.isdir(kept) else None}
    if all(place is None for place in places.values()):
        return {}
    from shardlint.front.shelves import shelf

    return {name: shelf(place) for name, place in places.items() if place is not None}


def _hub_cache(environ: Mapping[str, str]) -> str | None:
    """Where the hub's library keeps its files, by its own rules."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return os.path.expanduser(environ[name])
    if environ.get("HF_HOME"):
        return os.path.join(os.path.expanduser(environ["HF_HOME"]), "hub")
    home = environ.get("XDG_CACHE_HOME") or (os.path.join(environ["HOME"], ".cache") if environ.get("HOME") else None)
    return os.path.join(home, "huggingface", "hub") if home else None


def _revision(home: str) -> str | None:
    """The commit that `main` means, or the only one that is there."""
    ref = read_text(os.path.join(home, "refs", "main"))
    if isinstance(ref, str):
        return ref.strip() if _COMMIT.fullmatch(ref.strip()) else None
    try:
        snapshots = os.listdir(os.path.join(home, "snapshots"))
    except OSError:
        return None
    return snapshots[0] if len(snapshots) == 1 else None
