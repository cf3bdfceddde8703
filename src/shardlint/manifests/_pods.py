"""Pod templates: their containers, and what each of them starts on which cards."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import Launch
from shardlint.findings import Maybe
from shardlint.manifests import (
    _card_names,
    _cards,
    _claims,
    _devices,
    _opaque,
    _quotas,
    _resources,
    _surroundings,
)
from shardlint.manifests import _mounted as mounted
from shardlint.manifests._environment import environment
from shardlint.manifests._objects import name, place, text
from shardlint.manifests._started import started
from shardlint.manifests._values import NO_ENV, fragments, value_of, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence, walk


def launch_of(item: Mapping, form: str, copies: Node | None = None) -> Launch:
    """What all launches of an object share; `copies` is where their number is written."""
    return Launch(name(item), text(item.get("kind")), form, place(item), replicas=number(copies))


def number(node: Node | None) -> Maybe[int] | None:
    """A written number (replicas, sizes); None where nothing is written."""
    return _devices.count(value_of(node)) if isinstance(node, Scalar) and not node.is_null else None


def launches(
    spec: Node | None, base: Launch, document: Document, given: EnvMapping[str, Maybe[str]] = NO_ENV
) -> Iterator[Launch]:
    """The launches of a pod spec. `given` are variables that the controller adds to every container."""
    if not isinstance(spec, Mapping):
        return
    for container in serving_containers(spec):
        yield from container_launches(container, spec, base, document, given)


def container_launches(
    container: Mapping, spec: Mapping, base: Launch, document: Document, given: EnvMapping[str, Maybe[str]] = NO_ENV
) -> Iterator[Launch]:
    """The launches of one container of a pod spec."""
    env = environment(container, document, given)
    entrypoint, arguments = (fragments(container.get(part), env) for part in ("command", "args"))
    cards = _devices.added([part for part in _requests(container, spec, document) if part is not None])
    around = _surroundings.of_pod((container, spec))
    around = around._replace(
        shared_cards=around.shared_cards or _claims.part_of_card(container, spec, document),
        services=_surroundings.services(spec, document),
        card_quota=_quotas.quota(document),
    )
    shared = base._replace(
        image=image_of(container.get("image")),
        gpu=_cards.named(spec) or _resources.device_name(container) or base.gpu,
        unit=f"{base.name}:{base.at.line}/{base.unit}/{base.role}/{text(container.get('name'))}",
        container=around,
    )
    for command in mounted.commands(started(entrypoint, arguments, env, word), document):
        launch = command.within(shared)._replace(
            gpus_per_pod=_devices.usable(cards, command.env),
            cards=_card_names.usable(_card_names.of_count(cards), command.env),
            together=f"{shared.unit} {command.stage}",
            background=command.background,
        )
        yield launch if launch.argv else _opaque.told_by_environment(launch)


def serving_containers(spec: Mapping) -> Iterator[Mapping]:
    """Containers that keep running: the pod's own, and init containers that restart always (native sidecars).

    A list of containers that was indented under another key of the spec is found as well: Kubernetes refuses such
    a file, and its layout is still worth a word.
    """
    own = spec.get("containers")
    for container in own if isinstance(own, Sequence) else _misplaced(spec):
        if isinstance(container, Mapping):
            yield container
    first = spec.get("initContainers")
    for container in first if isinstance(first, Sequence) else ():
        if isinstance(container, Mapping) and text(container.get("restartPolicy")) == "Always":
            yield container


def _misplaced(spec: Mapping) -> Iterator[Node]:
    for node in walk(spec):
        held = node.get("containers")
        if isinstance(held, Sequence):
            yield from held
            return


def _requests(container: Mapping, spec: Mapping, document: Document) -> Iterator[Maybe[int] | None]:
    yield _resources.requested(container)
    yield _claims.claimed(container, spec, document)


def image_of(image: Node | None) -> Maybe[str] | None:
    """An image as written; None where none is."""
    return value_of(image) if isinstance(image, Scalar) and not image.is_null else None
