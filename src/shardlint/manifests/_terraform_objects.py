"""Terraform's blocks for pods as the Kubernetes objects that its provider makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from shardlint.manifests._objects import text
from shardlint.text import made
from shardlint.text.hcl import Module
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Fragment, Source

KINDS = {
    "deployment": "Deployment", "stateful_set": "StatefulSet", "daemonset": "DaemonSet", "daemon_set": "DaemonSet",
    "pod": "Pod", "job": "Job", "cron_job": "CronJob", "replication_controller": "ReplicaSet",
}  # fmt: skip
_LISTS = {
    "container": "containers", "init_container": "initContainers", "env": "env", "env_from": "envFrom",
    "volume": "volumes", "volume_mount": "volumeMounts", "port": "ports", "toleration": "tolerations",
    "node_selector_term": "nodeSelectorTerms", "match_expressions": "matchExpressions", "match_fields": "matchFields",
    "containers": "containers", "args": "args", "command": "command",
}  # fmt: skip
"""Types of blocks that stand for lists, and attributes that are lists; every other block is a mapping."""
_DEEPEST = 30


def kubernetes(kind: str, body: Node, module: Module) -> Node | None:
    """The object of a resource such as `kubernetes_deployment_v1`."""
    plain = re.sub(r"_v\d\w*$", "", kind).removeprefix("kubernetes_")
    if plain not in KINDS or not isinstance(body, Mapping):
        return None
    return made.open_node(_object(KINDS[plain], _Converter(module).mapping(made.adopt(body), 0), body.source))


def _object(kind: str, mapping: Any, source: Source) -> Any:
    at = mapping.start_mark.index
    pairs = [(_text("kind", source, at), _text(kind, source, at)), *mapping.value]
    return made.mapping(pairs, source, at, mapping.end_mark.index)


def _text(value: str, source: Source, at: int) -> Any:
    return made.scalar(Fragment(value, source, [at] * (len(value) + 1)), start=at, end=at)


class _Converter:
    """Names in snake_case become those of Kubernetes, blocks its mappings and lists."""

    def __init__(self, module: Module | None = None) -> None:
        self._maps = {} if module is None else dict(_config_maps(module))

    def mapping(self, raw: Any, depth: int) -> Any:
        pairs = [self._pair(key, value, depth) for key, value in raw.value] if depth < _DEEPEST else []
        return made.mapping(
            [pair for pair in pairs if pair is not None], raw.source, raw.start_mark.index, raw.end_mark.index
        )

    def _pair(self, key: Any, value: Any, depth: int) -> tuple[Any, Any]:
        name = key.value
        listed = _LISTS.get(name)
        if value.id == "sequence" and all(item.id == "mapping" for item in value.value) and value.value:
            bodies = [self.mapping(item, depth + 1) for item in value.value]
            if name == "env":
                bodies = [self._variable(item) for item in bodies]
            value = (
                bodies[-1]
                if listed is None
                else made.sequence(bodies, value.source, value.start_mark.index, value.end_mark.index)
            )
        return _renamed(key, listed or _camel(name)), value

    def _variable(self, entry: Any) -> Any:
        """A variable from a ConfigMap of the folder, with the value that it has there."""
        node = made.open_node(entry)
        reference = node.get("valueFrom", "configMapKeyRef")
        held = None if reference is None else self._maps.get(text(reference.get("name")))
        value = None if held is None else held.get(text(reference.get("key"))) if reference is not None else None
        if value is None:
            return entry
        pairs = [(key, item) for key, item in entry.value if key.value == "name"]
        at = entry.start_mark.index
        return made.mapping([*pairs, (_text("value", entry.source, at), value)], entry.source, at, entry.end_mark.index)


def _mapping(pairs: Iterable[tuple[Any, Any]], of: Any) -> Any:
    """A mapping in the place of another node."""
    return made.mapping(pairs, of.source, of.start_mark.index, of.end_mark.index)


def _sequence(items: Iterable[Any], of: Any) -> Any:
    return made.sequence(items, of.source, of.start_mark.index, of.end_mark.index)


def _config_maps(module: Module) -> Iterator[tuple[str, dict[str, Any]]]:
    for block in module.blocks("resource"):
        if block.labels[:1] not in (("kubernetes_config_map",), ("kubernetes_config_map_v1",)):
            continue
        raw = block.body()
        body = made.open_node(raw)
        data = next((value for key, value in raw.value if key.value == "data" and value.id == "mapping"), None)
        name = body.get("metadata", 0, "name")
        if data is not None and isinstance(name, Scalar):
            yield name.text, {key.value: value for key, value in data.value}


def _renamed(key: Any, name: str) -> Any:
    if key.value == name:
        return key
    start, end = key.start_mark.index, key.end_mark.index
    return made.scalar(Fragment(name, key.source, [start] * (len(name) + 1)), start=start, end=end)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def cloud_run(body: Node, source: Source) -> Node | None:
    """A Cloud Run service as a Deployment of its containers on the card that it selects."""
    template = body.get("template", 0)
    if not isinstance(template, Mapping):
        return None
    raw = _Converter().mapping(made.adopt(template), 0)
    at, end = raw.start_mark.index, raw.end_mark.index

    def within(name: str, value: Any) -> Any:
        return made.mapping([(_text(name, source, at), value)], source, at, end)

    return made.open_node(_object("Deployment", within("spec", within("template", within("spec", raw))), source))


def task_containers(body: Node, source: Source) -> Node | None:
    """An ECS task as a Pod: its containers, and the GPUs that each asks for."""
    definitions = body.get("container_definitions")
    if not isinstance(definitions, Sequence):
        return None
    containers = [_task_container(made.adopt(item), source) for item in definitions if isinstance(item, Mapping)]
    at, end = definitions.start, definitions.end
    listed = made.sequence(containers, source, at, end)
    spec = made.mapping([(_text("containers", source, at), listed)], source, at, end)
    return made.open_node(_object("Pod", made.mapping([(_text("spec", source, at), spec)], source, at, end), source))


def _task_container(raw: Any, source: Source) -> Any:
    at, end = raw.start_mark.index, raw.end_mark.index
    node = made.open_node(raw)
    names = {"command": "args", "entryPoint": "command", "environment": "env"}
    pairs = [(_renamed(key, names.get(key.value, key.value)), value) for key, value in raw.value]
    requirements = node.get("resourceRequirements")
    for entry in requirements if isinstance(requirements, Sequence) else ():
        value = entry.get("value")
        if text(entry.get("type")).upper() == "GPU" and isinstance(value, Scalar):
            limits = made.mapping([(_text("nvidia.com/gpu", source, at), made.adopt(value))], source, at, end)
            limited = made.mapping([(_text("limits", source, at), limits)], source, at, end)
            pairs.append((_text("resources", source, at), limited))
    return made.mapping(pairs, source, at, end)
