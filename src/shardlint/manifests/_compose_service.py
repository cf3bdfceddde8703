"""A service of a Compose file as its commands see it: variables replaced, what it extends looked through."""

from __future__ import annotations

from shardlint.findings import Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests._dotenv import variables_of
from shardlint.manifests._interpolation import interpolate, split
from shardlint.manifests._objects import text
from shardlint.manifests._splices import word_of
from shardlint.text.documents import documents
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Fragment, Library, Source, beside

_DEPTH = 8
"""Services that extend services that are followed."""


class Project:
    """The file that a service stands in, and the variables that Compose knows there."""

    def __init__(self, source: Source, library: Library) -> None:
        self.source = source
        self.library = library
        self._variables: dict[str, Maybe[str]] | None = None

    def sibling(self, path: str) -> Source | Unknown:
        return self.library.sibling(beside(self.source.path, path))

    @property
    def variables(self) -> dict[str, Maybe[str]]:
        """Those of the `.env` file beside it."""
        if self._variables is None:
            file = self.sibling(".env")
            self._variables = variables_of(file, {}) if isinstance(file, Source) else {}
        return self._variables

    def fragment(self, scalar: Scalar) -> Fragment:
        fragment = scalar.fragment()
        return interpolate(fragment, self.variables) if "$" in fragment.text else fragment

    def word(self, node: Node | None) -> Maybe[str] | None:
        """A scalar's value; None where nothing is written."""
        if not isinstance(node, Scalar) or node.is_null:
            return None
        located = node.located()
        if isinstance(located, Unknown) or "$" not in located.value:
            return located
        return word_of(self.fragment(node))


class Service(NamedTuple):
    """A service and those that it extends, the nearest first."""

    layers: tuple[Mapping, ...]
    project: Project

    def get(self, *path: str) -> Node | None:
        return next((node for layer in self.layers if (node := layer.get(*path)) is not None), None)

    def word(self, *path: str) -> Maybe[str] | None:
        return self.project.word(self.get(*path))

    def words(self, *path: str) -> list[Maybe[str]]:
        """The scalars of a sequence."""
        node = self.get(*path)
        found = [self.project.word(entry) for entry in node] if isinstance(node, Sequence) else []
        return [word for word in found if word is not None]

    def fragments(self, name: str) -> list[Fragment]:
        """The words of `command` or `entrypoint`: a list as it stands, a string split by Compose's rules."""
        node = self.get(name)
        if isinstance(node, Sequence):
            return [self.project.fragment(entry) for entry in node if isinstance(entry, Scalar)]
        if isinstance(node, Scalar) and not node.is_null:
            return split(self.project.fragment(node))
        return []


def bases(own: Mapping, services: Mapping, project: Project) -> list[Mapping]:
    """The services that one extends, in the same file or in another, the nearest first."""
    found: list[Mapping] = []
    while (extends := own.get("extends")) is not None and len(found) < _DEPTH:
        if (path := text(extends.get("file"))) and (elsewhere := _services_of(project.sibling(path))) is not None:
            services = elsewhere
        base = services.get(text(extends.get("service")) or text(extends))
        if not isinstance(base, Mapping) or base in (own, *found):
            break
        found.append(base)
        own = base
    return found


def _services_of(source: Source | Unknown) -> Mapping | None:
    for document in documents(source).documents if isinstance(source, Source) else ():
        services = document.root.get("services") if document.root is not None else None
        if isinstance(services, Mapping):
            return services
    return None
