"""From sources to deployments: each file's documents, their launches, the servers that these make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from shardlint import engines, manifests, servers
from shardlint.check import unknown_form
from shardlint.check.config_files import ConfigFiles, normal
from shardlint.check.settings import Settings
from shardlint.deployment import Deployment, Launch
from shardlint.findings import Duplicate, FileNote, Located, Maybe, Problem
from shardlint.findings.records import NamedTuple
from shardlint.text import Document, Library, Node, Parsed, Source, comments, documents, duplicates_below
from shardlint.text.documents import is_well_formed

VALUES = "helm-values"
"""The form of values that say nothing of the chart that they are for."""


class FileReading(NamedTuple):
    """One file as it was read: its deployments, and what its text has that no deployment shows."""

    source: Source
    note: FileNote
    deployments: tuple[Deployment, ...] = ()
    problems: tuple[Problem, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    config_files: frozenset[str] = frozenset()
    """Paths of the files of flags that its commands name, and of the values that fill it in."""
    is_config_file: bool = False
    """Whether it is a file of flags or values itself, read as if a command or a template named it."""
    is_changed_elsewhere: bool = False
    """Whether another file says how a deployment that stands here is really made (an overlay, a chart's values)."""

    @property
    def is_part(self) -> bool:
        """Whether what stands in it was read with a command elsewhere, and is judged there."""
        return (self.is_config_file or self.is_changed_elsewhere) and not self.deployments


def read_file(source: Source, library: Library, settings: Settings) -> FileReading:
    """All deployments of one file. A document that cannot be parsed leaves the others to be read."""
    if not manifests.can_have_any(source, settings.registry.forms) and is_well_formed(source):
        return _reading(source, (), (), library, settings)
    parsed = documents(source)
    if any(document.templated for document in parsed.documents):
        return _template(source, parsed, library, settings)
    return _reading(source, parsed.documents, parsed.problems, library, settings)


def _template(source: Source, parsed: Parsed, library: Library, settings: Settings) -> FileReading:
    """A template as its chart's own values make it, as far as they do; by itself where they make no YAML of it."""
    from shardlint.text import charts  # few files are templates

    found = charts.filled(source, library)
    made = documents(found[0]) if found is not None else parsed
    if found is None or (made.problems and not parsed.problems):
        return _reading(source, parsed.documents, parsed.problems, library, settings)
    reading = _reading(source, made.documents, made.problems, library, settings)
    values = frozenset((normal(found[1]),)) if reading.deployments else frozenset()
    return reading._replace(config_files=reading.config_files | values)


def read_document(document: Document, library: Library, settings: Settings) -> FileReading:
    """The same for a document that is known already."""
    return _reading(document.source, (document,), (), library, settings)


def _reading(
    source: Source,
    parsed: Sequence[Document],
    problems: tuple[Problem, ...],
    library: Library,
    settings: Settings,
) -> FileReading:
    forms: list[str] = []
    roots: list[Node | None] = []
    launches: list[Launch] = []
    for document in parsed:
        found = manifests.launches(document, library, settings.registry.forms)
        problems += found.problems
        if found.form is not None:
            forms.append(found.form)
            roots.append(document.root)
            launches += found.launches
    given = {
        name: Located(value, origin="given", source="the call's env") for name, value in settings.environment.items()
    }
    recognise = partial(engines.recognise, among=settings.registry.engines)
    found_servers = servers.assemble([_within(launch, given) for launch in launches], recognise)
    files = ConfigFiles(source, library)
    deployments = tuple(
        engines.read(
            server, settings.registry.engines, partial(files.entries, server.primary), settings.vllm, settings.upgrade
        )
        for server in found_servers
    )
    problems += comments.problems(source)
    note = _note(source, forms, deployments, problems)
    repeated = tuple(chain.from_iterable(map(duplicates_below, roots))) if deployments else ()
    is_part = files.reads_itself or note.form == VALUES
    return FileReading(source, note, deployments, problems, repeated, frozenset(files.read), is_part)


def without_parts(readings: Sequence[FileReading]) -> list[FileReading]:
    """The readings without what is read as a part of something else: each deployment is left once.

    A file of flags stands where a command names it, values where a template of their chart is filled in with them, an
    object that an overlay changes where the overlay makes it.
    """
    named = {path for reading in readings for path in reading.config_files}
    made = {part for reading in readings for part in _made_of(reading)}
    return [_without_parts(reading, named, made) for reading in readings]


def _without_parts(reading: FileReading, named: set[str], made: set[tuple[str, str]]) -> FileReading:
    path = normal(reading.source.path)
    if reading.is_config_file and path in named:
        return reading._replace(deployments=())
    left = tuple(one for one in reading.deployments if (path, one.name) not in made or _places(one) - {path})
    changed = len(left) < len(reading.deployments)
    return reading._replace(deployments=left, is_changed_elsewhere=changed) if changed else reading


def _made_of(reading: FileReading) -> Iterator[tuple[str, str]]:
    """The files, and the names in them, that deployments of this file are made of."""
    own = normal(reading.source.path)
    for deployment in reading.deployments:
        for path in _places(deployment) - {own}:
            yield path, deployment.name


def _places(deployment: Deployment) -> set[str]:
    """The files in which the words and values of a deployment's object stand."""
    launch = deployment.server.primary
    values = (*launch.argv, launch.image, launch.gpus_per_pod, launch.gpu, launch.replicas)
    spans = (launch.at, *(value.span for value in values if value is not None))
    return {normal(span.path) for span in spans if span is not None}


def _within(launch: Launch, given: Mapping[str, Maybe[str]]) -> Launch:
    return launch._replace(env={**given, **launch.env}) if given else launch


def _note(
    source: Source, forms: Sequence[str], deployments: Sequence[Deployment], problems: Sequence[Problem]
) -> FileNote:
    if deployments:
        return FileNote(source.path, forms[0], None)
    if problems:
        return FileNote(source.path, None, "could not be parsed")
    if forms:
        return FileNote(source.path, forms[0], "starts no engine that is known")
    return FileNote(source.path, None, unknown_form.reason(source))
