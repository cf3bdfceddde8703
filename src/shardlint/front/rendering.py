"""`--render`: charts and kustomizations as the tools that are installed here render them.

The one place that starts a program for a manifest's sake, and only where the option asks for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial

from shardlint.findings import FileNote, Problem, Span
from shardlint.findings.records import NamedTuple
from shardlint.front.failures import CannotRun
from shardlint.front.files import MOST_BYTES, SKIPPED_FOLDERS, STANDARD_INPUT, Found, is_inside
from shardlint.text import Source
from shardlint.text.rendered import Rendered

SECONDS = 60
"""That one chart or kustomization may take."""
CHART = "Chart.yaml"
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_BUILDERS = (("kustomize", "build"), ("kubectl", "kustomize"))
_MOST_WORDS = 300
"""Characters of what a tool says that are told on."""


class Folder(NamedTuple):
    """A folder that a tool can render."""

    path: str
    is_chart: bool


def render(paths: Sequence[str], found: Found) -> Found:
    """What was found, with the charts and kustomizations in the paths rendered in the place of their files.

    Raises CannotRun where there is none, or where no tool for one is installed.
    """
    folders = [folder for path in paths for folder in _folders(path)]
    if not folders:
        raise CannotRun(f"--render: there is neither a chart nor a kustomization in {', '.join(paths)}")
    homes = [os.path.realpath(folder.path) for folder in folders]
    sources = [source for source in found.sources if not _lies_in(source.path, homes)]
    notes = [note for note in found.notes if not _lies_in(note.path, homes)]
    problems = list(found.problems)
    for folder in folders:
        outcome = _rendered(folder)
        if isinstance(outcome, Source):
            sources.append(outcome)
        else:
            problems.append(Problem(Span(folder.path, 1, 1, 1, 1), outcome))
            notes.append(FileNote(folder.path, None, "could not be rendered"))
    return Found(sources, notes, problems)


def _folders(path: str) -> Iterator[Folder]:
    """The charts and kustomizations from a folder down; a chart's own charts are rendered with it."""
    if path == STANDARD_INPUT or not os.path.isdir(path):
        return
    for folder, below, names in os.walk(path):
        is_chart = CHART in names
        if is_chart or any(name in names for name in KUSTOMIZATIONS):
            yield Folder(folder.removeprefix(os.path.join(os.curdir, "")), is_chart)
        below[:] = [] if is_chart else sorted(set(below) - SKIPPED_FOLDERS)


def _lies_in(path: str, homes: Sequence[str]) -> bool:
    return path != STANDARD_INPUT and any(is_inside(os.path.realpath(path), home) for home in homes)


def _rendered(folder: Folder) -> Source | str:
    """The rendered text, or what went wrong."""
    command = _command(folder._replace(path=_as_path(folder.path)))
    said = " ".join(command)
    try:
        run = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"`{said}` was still running after {SECONDS} seconds"
    except OSError as failure:
        return f"`{said}` could not be started: {failure.strerror}"
    if run.returncode:
        return f"`{said}` failed with exit code {run.returncode}: {_told(run.stderr)}"
    if len(run.stdout) > MOST_BYTES:
        return f"`{said}` printed more than {MOST_BYTES // 1024 // 1024} MiB"
    text = run.stdout.decode(errors="replace")
    return Rendered(folder.path, text, partial(_path_of, folder.path)) if folder.is_chart else Source(folder.path, text)


def _command(folder: Folder) -> list[str]:
    """Raises CannotRun where no tool for it is installed."""
    if folder.is_chart:
        if (helm := shutil.which("helm")) is None:
            raise CannotRun(f"--render: {folder.path} is a chart, and helm is not installed")
        return [helm, "template", folder.path]
    for name, subcommand in _BUILDERS:
        if (tool := shutil.which(name)) is not None:
            return [tool, subcommand, folder.path]
    raise CannotRun(f"--render: {folder.path} is a kustomization, and neither kustomize nor kubectl is installed")


def _as_path(folder: str) -> str:
    """A folder as no tool takes it for an option or for a chart of some repository."""
    return folder if os.path.isabs(folder) else os.path.join(os.curdir, folder)


def _path_of(folder: str, name: str) -> str:
    """`chat/templates/x.yaml`, which begins with the chart's name, as a path in its folder."""
    return os.path.join(folder, name.partition("/")[2] or name)


def _told(stderr: bytes) -> str:
    """The last words of a tool that failed, on one line."""
    return " ".join(stderr.decode(errors="replace").split())[-_MOST_WORDS:] or "it says nothing"
