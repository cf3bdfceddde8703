"""Objects of KubeRay: what their applications and commands start, on the workers of their cluster."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container, Launch
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import (
    _cards,
    _devices,
    _inner,
    _installs,
    _pods,
    _ray_cluster,
    _ray_serve,
    _resources,
    _roles,
    _surroundings,
)
from shardlint.manifests._objects import text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library


class Group(NamedTuple):
    """The head or one group of workers."""

    image: Maybe[str] | None
    gpus: Maybe[int] | None
    gpu: Maybe[str] | None
    hosts: Maybe[int] | None
    copies: Maybe[int] | None
    env: tuple[str, ...]
    container: Container | None


def service(item: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch | Problem]:
    """The applications of a RayService."""
    base = _pods.launch_of(item, form)
    written = item.get("spec", "serveConfigV2")
    config = written
    if isinstance(written, Scalar):
        parsed = _inner.documents_in(written)
        yield from parsed.problems
        config = next((inner.root for inner in parsed.documents if inner.root is not None), None)
    applications = list(_roles.entries(config.get("applications") if config is not None else None))
    workers = _serving(_groups(item.get("spec", "rayClusterConfig")))
    for application in applications:
        own = base._replace(unit=f"{base.name}:{application.start}")
        if len(applications) > 1 and (named := application.get("name")) is not None:
            own = own._replace(name=f"{base.name}/{text(named)}", at=named.span)
        yield from _ray_serve.launches_of(application, own, workers)


def job(item: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch | Problem]:
    """The command that a RayJob submits to its cluster."""
    base = _pods.launch_of(item, form)
    base = base._replace(unit=base.name)
    entrypoint, groups = item.get("spec", "entrypoint"), _groups(item.get("spec", "rayClusterSpec"))
    workers = _serving(groups)
    yield from _job_environment(item.get("spec", "runtimeEnvYAML"), base)
    if isinstance(entrypoint, Scalar) and not entrypoint.is_null:
        from shardlint.manifests import _scripts

        base = base._replace(
            image=workers.image, gpus_per_pod=workers.gpus_per_pod, gpu=workers.gpu, pods=_pods_with_cards(groups)
        )
        yield from _scripts.launches_of(entrypoint.fragment(), form, library, base=base)


def cluster(item: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch]:
    """The commands that the pods of a RayCluster run beside Ray, which the operator starts in any case."""
    base = _pods.launch_of(item, form)
    spec = item.get("spec")
    for launch in _ray_cluster.launches(spec, base, document) if spec is not None else ():
        if launch.argv:
            yield launch._replace(entrypoint_of_image=False)


def _job_environment(written: Node | None, base: Launch) -> Iterator[Launch]:
    """What the job's runtime environment installs."""
    if isinstance(written, Scalar) and not written.is_null:
        for inner in _inner.documents_in(written).documents:
            yield from _installs.launches(inner.root.get("pip") if inner.root is not None else None, base)


def _groups(spec: Node | None) -> list[Group]:
    """The groups of a cluster that have cards, its head first."""
    if spec is None:
        return []
    head = spec.get("headGroupSpec")
    written = [*([head] if head is not None else []), *_roles.entries(spec.get("workerGroupSpecs"))]
    groups = [group for node in written if (group := _group(node)) is not None]
    return [group for group in groups if group.gpus is not None and _value(group.gpus) != 0]


def _group(node: Node) -> Group | None:
    pod = node.get("template", "spec")
    containers = pod.get("containers") if pod is not None else None
    first = containers[0] if isinstance(containers, Sequence) and len(containers) else None
    if pod is None or first is None:
        return None
    told = node.get("rayStartParams", "num-gpus")
    return Group(
        image=_pods.image_of(first.get("image")),
        gpus=_devices.count(value_of(told)) if isinstance(told, Scalar) else _resources.requested(first),
        gpu=_cards.named(pod) or _resources.device_name(first),
        hosts=_pods.number(node.get("numOfHosts")),
        copies=_pods.number(node.get("replicas")) or _pods.number(node.get("minReplicas")),
        env=tuple(text(entry.get("name")) for entry in _roles.entries(first.get("env"))),
        container=_ray_cluster.around(_surroundings.of_pod((first, pod))),
    )


def _serving(groups: list[Group]) -> _ray_serve.Cluster:
    """The workers on which Ray puts ranks: those of the one group that has cards; of several, what they agree on."""
    if not groups:
        return _ray_serve.Cluster()
    first = groups[0]
    counts = {_value(group.gpus) for group in groups}
    cards = {group.gpu.value if isinstance(group.gpu, Located) else None for group in groups}
    gpus, gpu = first.gpus, first.gpu
    if len(counts) > 1:
        gpus = Unknown("the groups of workers have different numbers of GPUs", gpus.span if gpus else None)
    if len(cards) > 1:
        gpu = Unknown("the groups of workers have different GPUs", gpu.span if gpu else None)
    return _ray_serve.Cluster(
        first.image,
        gpus,
        gpu,
        first.hosts,
        tuple(name for group in groups for name in group.env),
        first.container,
        _devices.added([_cards_of(group) for group in groups]),
    )


def _cards_of(group: Group) -> Maybe[int]:
    """Cards of all pods of a group."""
    return _roles.product(group.gpus, group.copies, group.hosts) or Located(0, origin="default")


def _pods_with_cards(groups: list[Group]) -> Maybe[int] | None:
    """All pods that have cards; a head has no copies."""
    counts = [_roles.product(group.copies, group.hosts) or Located(1, origin="default") for group in groups]
    return _devices.added(list(counts))


def _value(count: Maybe[int] | None) -> int | None:
    return count.value if isinstance(count, Located) else None
