"""Services of a Compose file, and what each of them starts."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _card_names, _devices, _mounts, _surroundings
from shardlint.manifests._compose_cards import are_replaceable, reserved, reserved_names
from shardlint.manifests._compose_service import Project, Service, bases
from shardlint.manifests._dotenv import raw_variables_of, variables_of
from shardlint.manifests._objects import text
from shardlint.manifests._splices import word_of
from shardlint.manifests._started import started
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library, Source


def launches_of(services: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch]:
    """The launches of every service of a file."""
    project = Project(document.source, library)
    for key, own in services.items():
        if isinstance(own, Mapping):
            base = Launch(f"service/{key.text}", "service", form, key.span, unit=key.text)
            yield from _service_launches(Service((own, *bases(own, services, project)), project), base)


def _service_launches(service: Service, base: Launch) -> Iterator[Launch]:
    env = _environment(service)
    cards = _devices.from_runtime(reserved(service, env), env)
    names = None if are_replaceable(service) else _card_names.from_runtime(reserved_names(service), env)
    copies = service.word("deploy", "replicas") or service.word("scale")
    base = base._replace(container=_surroundings.of_service(service))
    base = base._replace(mounts=_mounts.of_service(service), together=f"profiles {_profiles(service)}")
    shared = base._replace(image=service.word("image"), replicas=_devices.count(copies) if copies else None)
    commands = tuple(started(service.fragments("entrypoint"), service.fragments("command"), env))
    for command in commands:
        yield command.within(shared)._replace(
            gpus_per_pod=_devices.usable(cards, command.env),
            cards=_card_names.usable(names, command.env),
            background=command.background or command is commands[-1],
        )


def _profiles(service: Service) -> list[str]:
    """Services of the same profiles are started together; of others it is not known."""
    return sorted(word.value if isinstance(word, Located) else word.spelled for word in service.words("profiles"))


def _environment(service: Service) -> dict[str, Maybe[str]]:
    env: dict[str, Maybe[str]] = {}
    for layer in reversed(service.layers):
        for entry in _entries(layer.get("env_file")):
            env.update(_of_file(entry, service.project, env))
        env.update(_written(layer.get("environment"), service.project))
    return env


def _entries(node: Node | None) -> Iterator[Node]:
    for entry in node if isinstance(node, Sequence) else (node,):
        if entry is not None:
            yield entry


def _of_file(entry: Node, project: Project, before: EnvMapping[str, Maybe[str]]) -> dict[str, Maybe[str]]:
    """The variables of one `env_file`: a path, or `path` and `format`."""
    path = project.word(entry.get("path") or entry)
    file = project.sibling(path.value) if isinstance(path, Located) else None
    if not isinstance(file, Source):
        return {}
    if text(entry.get("format")) == "raw":
        return dict(raw_variables_of(file, {}))
    return variables_of(file, {**project.variables, **before})


def _written(node: Node | None, project: Project) -> Iterator[tuple[str, Maybe[str]]]:
    """`environment` as a mapping, or as a list of `NAME=value`."""
    for key, written in node.items() if isinstance(node, Mapping) else ():
        yield key.text, project.word(written) or _of_caller(written)
    for entry in node if isinstance(node, Sequence) else ():
        if isinstance(entry, Scalar):
            fragment = project.fragment(entry)
            name, equals, _ = fragment.text.partition("=")
            rest = fragment.part(len(name) + 1, len(fragment.text)) if equals else None
            yield name, word_of(rest) if rest is not None else _of_caller(entry)


def _of_caller(node: Node) -> Unknown:
    return Unknown("taken from the environment of whoever starts Compose", node.span, node.spelled)
