"""The services of a DynamoGraphDeployment, each the pods of one engine or of something beside the engines."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Launch
from shardlint.findings import Maybe
from shardlint.manifests import _devices, _dynamo_config, _pods, _roles, _surroundings
from shardlint.manifests._environment import variables
from shardlint.manifests._objects import kind, text
from shardlint.manifests._started import first_word
from shardlint.manifests._values import fragments, value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar

BESIDE = frozenset({"frontend", "planner", "router", "epp", "gateway", "processor", "profiler"})
"""Types and names of components that start no engine, in images that have one."""


def launches_of(item: Mapping, form: str, document: Document) -> Iterator[Launch]:
    """The launches of all services (v1alpha1) or components (v1beta1) of one graph."""
    spec = item.get("spec")
    if spec is None:
        return
    base = _pods.launch_of(item, form)
    if kind(item) == "DynamoComponentDeployment":
        yield from _of_service(spec, base, (), document)
        return
    services, shared = spec.get("services"), (spec.get("envs") or spec.get("env"),)
    for key, service in services.items() if isinstance(services, Mapping) else ():
        if not _is_beside(key.text, service):
            yield from _of_service(service, _roles.role(base, key), shared, document)
    for component in _roles.entries(spec.get("components")):
        name = component.get("name")
        if not _is_beside(text(name), component):
            yield from _of_service(component, _roles.role(base, name or ""), shared, document)


def _is_beside(name: str, service: Node) -> bool:
    kinds = (service.get("componentType"), service.get("type"))
    return name.lower() in BESIDE or any(text(own).lower() in BESIDE for own in kinds)


def _of_service(service: Node, base: Launch, shared: tuple[Node | None, ...], document: Document) -> Iterator[Launch]:
    """The launches of one service; each node that it spans has the pod that is written once."""
    env: dict[str, Maybe[str]] = {}
    for entries in (*shared, service.get("envs"), service.get("env")):
        env = variables(entries, document, env)
    pods = _pods.number(service.get("multinode", "nodeCount"))
    base = base._replace(replicas=_pods.number(service.get("replicas")), pods=pods, is_spread=True)
    cards = _cards(service)
    for launch in _of_pod(service, base, document, env):
        own = launch._replace(container=_around(launch.container, service))
        if cards is not None:
            own = own._replace(gpus_per_pod=_devices.usable(cards, launch.env))
        yield _dynamo_config.resolved(own, document.source)


def _of_pod(service: Node, base: Launch, document: Document, env: dict[str, Maybe[str]]) -> Iterator[Launch]:
    extra = service.get("extraPodSpec")
    main = extra.get("mainContainer") if extra is not None else None
    if isinstance(extra, Mapping) and isinstance(main, Mapping):
        for launch in _pods.container_launches(main, extra, base, document, env):
            yield from _by_shell(launch, main)
    yield from _pods.launches(service.get("podTemplate", "spec"), base, document, env)


def _by_shell(launch: Launch, container: Mapping) -> Iterator[Launch]:
    """Arguments without a command that are one text: the operator gave them to a shell once."""
    arguments = fragments(container.get("args"), launch.env) if launch.entrypoint_of_image else []
    if len(arguments) != 1 or " " not in arguments[0].text.strip():
        yield launch
        return
    from shardlint.text import shell

    for command in shell.read(arguments[0], launch.env).commands:
        if command.words:
            env = {**launch.env, **command.env}
            conditional = command.conditional
            at = first_word(command)
            yield launch._replace(
                at=at, argv=command.words, env=env, entrypoint_of_image=False, conditional=conditional
            )


def _around(container: Container | None, service: Node) -> Container | None:
    """The operator mounts memory at /dev/shm, and gives the service's probes to its main container."""
    around = _surroundings.with_operators_memory(container)
    if around is None:
        return None
    return around._replace(
        liveness=_surroundings.probe((service,), "livenessProbe") or around.liveness,
        startup=_surroundings.probe((service,), "startupProbe") or around.startup,
    )


def _cards(service: Node) -> Maybe[int] | None:
    """`resources.limits.gpu`, which the operator makes a resource of the main container of."""
    for part in ("limits", "requests"):
        count = service.get("resources", part, "gpu")
        if isinstance(count, Scalar) and not count.is_null:
            return _devices.count(value_of(count))
    return None
