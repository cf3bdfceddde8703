"""What a NixOS module starts: `virtualisation.oci-containers`, and `systemd.services` with a command or a script."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Maybe, Problem
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _docker_run, _mounts, _scripts, _surroundings
from shardlint.manifests._started import started
from shardlint.manifests._values import value_of
from shardlint.text import made, nix
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence, walk
from shardlint.text.source import Library, Source

_ENGINE = Pattern(r"(?i)llm|sglang|tensorrt|text-generation|tgi")


def launches_of(source: Source, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of containers and services, wherever in the module they stand."""
    if not source.holds(_ENGINE):
        return
    for holder in walk(made.open_node(nix.root(source))):
        for key, value in holder.items() if isinstance(holder, Mapping) else ():
            if not isinstance(value, Mapping):
                continue
            if isinstance(value.get("image"), Scalar):
                base = Launch(f"container/{key.text}", "container", form, key.span, unit=key.text)
                yield from _container(value, base, library)
            elif value.get("serviceConfig") is not None or value.get("script") is not None:
                base = Launch(f"unit/{key.text}", "unit", form, key.span, unit=key.text)
                yield from _service(value, base, library)


def _scalars(node: Node | None) -> list[Scalar]:
    entries = node if isinstance(node, Sequence) else (node,)
    return [entry for entry in entries if isinstance(entry, Scalar)]


def _environment(node: Node | None) -> dict[str, Maybe[str]]:
    pairs = node.items() if isinstance(node, Mapping) else ()
    return {key.text: value_of(value) for key, value in pairs if isinstance(value, Scalar)}


def _container(container: Mapping, base: Launch, library: Library) -> Iterator[Launch]:
    options, volumes = (
        [value_of(word) for word in _scalars(container.get(key))] for key in ("extraOptions", "volumes")
    )
    devices = [value_of(word) for word in _scalars(container.get("devices"))]
    run = _docker_run.options(options, device=devices, volume=volumes)
    env = {**_environment(container.get("environment")), **run.environment({}, library.sibling)}
    image = container.get("image")
    entrypoint, command = ([word.fragment() for word in _scalars(container.get(key))] for key in ("entrypoint", "cmd"))
    shared = base._replace(
        image=value_of(image) if isinstance(image, Scalar) else None,
        mounts=_mounts.of_docker_run(run),
        container=_surroundings.of_run(run),
    )
    for start in started(entrypoint, command, env):
        yield start.within(shared)._replace(
            gpus_per_pod=run.cards(start.env),
            cards=run.card_names(start.env),
        )


def _service(service: Mapping, base: Launch, library: Library) -> Iterator[Launch | Problem]:
    env = _environment(service.get("environment"))
    for entry in _scalars(service.get("serviceConfig", "Environment")):
        name, equals, _ = entry.text.partition("=")
        if equals:
            env[name] = _docker_run.after(value_of(entry), len(name) + 1)
    commands = [*_scalars(service.get("serviceConfig", "ExecStart")), *_scalars(service.get("script"))]
    for command in commands:
        yield from _scripts.launches_of(command.fragment(), base.form, library, env, base)
