"""Pods of a template with patches laid over it: containers of one name are one container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardlint.deployment import Launch
from shardlint.findings import Maybe
from shardlint.manifests import _cards, _claims, _devices, _pods, _resources, _surroundings
from shardlint.manifests._environment import environment
from shardlint.manifests._objects import text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping as MappingNode
from shardlint.text.nodes import Node

Variables = Mapping[str, Maybe[str]]


def launches(specs: Sequence[Node], base: Launch, document: Document, given: Variables) -> Iterator[Launch]:
    """The launches of the pod that the specs make together; of what several state, the last one holds."""
    layers: dict[str, list[tuple[MappingNode, MappingNode]]] = {}
    for spec in specs:
        for container in _pods.serving_containers(spec) if isinstance(spec, MappingNode) else ():
            assert isinstance(spec, MappingNode)
            layers.setdefault(text(container.get("name")), []).append((container, spec))
    for layered in layers.values():
        yield from _of_container(layered, base, document, given)


def _of_container(
    layers: Sequence[tuple[MappingNode, MappingNode]], base: Launch, document: Document, given: Variables
) -> Iterator[Launch]:
    """The container that says what is started; the others fill in what it leaves out."""
    speaking = [layer for layer in layers if layer[0].get("command") is not None or layer[0].get("args") is not None]
    container, spec = (speaking or layers)[-1]
    for other, _ in layers:
        if other is not container:
            given = environment(other, document, given)
    for launch in _pods.container_launches(container, spec, base, document, given):
        yield _filled(launch, layers, document)


def _filled(launch: Launch, layers: Sequence[tuple[MappingNode, MappingNode]], document: Document) -> Launch:
    image, cards, gpu = launch.image, launch.gpus_per_pod, launch.gpu
    for container, spec in reversed(layers):
        image = image or _pods.image_of(container.get("image"))
        gpu = gpu or _cards.named(spec) or _resources.device_name(container)
        if cards is None:
            asked = (_resources.requested(container), _claims.claimed(container, spec, document))
            cards = _devices.usable(_devices.added([part for part in asked if part is not None]), launch.env)
    around = _surroundings.of_pod(*reversed(layers))
    return launch._replace(image=image, gpus_per_pod=cards, gpu=gpu, container=around)
