"""The cards that a Compose service is given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _card_names, _devices, _docker
from shardlint.manifests._compose_service import Project, Service
from shardlint.manifests._objects import text
from shardlint.text.nodes import Node, Sequence

_REQUESTS = (("deploy", "resources", "reservations", "devices"), ("gpus",))
_SET = re.compile(r"_VISIBLE_DEVICES[\"']?\s*[:=]([^\n,}]*)")
_CARD_WORDS = frozenset({"gpu", "nvidia", "compute", "utility", "amd", "amdgpu", "cdi"})


def reserved(service: Service, env: Mapping[str, Maybe[str]]) -> Maybe[int] | None:
    """Cards of a service by its reservations, `gpus`, `devices` or `runtime`; None where nothing gives it any."""
    for path in _REQUESTS:
        node = service.get(*path)
        if (word := service.project.word(node)) is not None:
            return _docker.gpus(word)
        if (found := _devices.added(_of_requests(node, service.project))) is not None:
            return found
    mapped = _docker.devices(service.words("devices"))
    runtime = service.word("runtime")
    if mapped is None and isinstance(runtime, Located) and runtime.value == "nvidia":
        return _devices.from_runtime(_docker.all_of_host(runtime), env)
    return mapped


def reserved_names(service: Service) -> _card_names.Names | None:
    """The cards by name; None where they are not known."""
    for path in _REQUESTS:
        node = service.get(*path)
        if (word := service.project.word(node)) is not None:
            return _card_names.of_gpus_option(word)
        for entry in node if isinstance(node, Sequence) else ():
            if _of_request(entry, service.project) is not None:
                return _names(entry, service.project)
    runtime = service.word("runtime")
    if isinstance(runtime, Located) and runtime.value == "nvidia":
        return _card_names.EVERY
    return _card_names.of_devices(service.words("devices"))


def are_replaceable(service: Service) -> bool:
    """Whether the cards are a variable's default, and so for whoever starts the service to choose (`${CARDS:-0}`)."""
    given = [node.spelled for path in _REQUESTS if (node := service.get(*path)) is not None]
    environment = service.get("environment")
    set_by = _SET.findall(environment.spelled) if environment is not None else []
    return any("${" in text for text in (*given, *set_by))


def _names(entry: Node, project: Project) -> _card_names.Names | None:
    ids = entry.get("device_ids")
    if not isinstance(ids, Sequence):
        return _card_names.of_count(_of_request(entry, project))
    words = [word for node in ids if (word := project.word(node)) is not None]
    known = [word.value.rpartition("=")[2] for word in words if isinstance(word, Located)]
    return tuple(dict.fromkeys(known)) if len(known) == len(words) else None


def _of_requests(node: Node | None, project: Project) -> list[Maybe[int]]:
    counts = [_of_request(entry, project) for entry in node] if isinstance(node, Sequence) else []
    return [count for count in counts if count is not None]


def _of_request(entry: Node, project: Project) -> Maybe[int] | None:
    """One device request: ids, a count, or all cards where neither is written; None where it is for no card."""
    words = {text(node) for node in _flat(entry.get("capabilities"))} | {text(entry.get("driver"))}
    if not words & _CARD_WORDS:
        return None
    ids = entry.get("device_ids")
    if isinstance(ids, Sequence):
        return _of_ids([word for node in ids if (word := project.word(node)) is not None], ids)
    count = project.word(entry.get("count"))
    return _docker.gpus(count) if count is not None else Unknown(_devices.ALL_OF_HOST, entry.span, entry.spelled)


def _of_ids(names: list[Maybe[str]], ids: Sequence) -> Maybe[int]:
    for name in names:
        if isinstance(name, Unknown):
            return name
    known = [name.value.rpartition("=")[2] for name in names if isinstance(name, Located)]
    return _devices.listed(Located(",".join(known), ids.span, ids.spelled))


def _flat(node: Node | None) -> Iterator[Node]:
    """The entries of a list, and of lists in it (`[[gpu]]`)."""
    for entry in node if isinstance(node, Sequence) else ():
        yield from entry if isinstance(entry, Sequence) else (entry,)
