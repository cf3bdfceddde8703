"""kthena: ModelServing with its roles, and ModelBooster, whose controller writes the engine's command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, kind, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import Library

NAME = "kthena"
FILES = YAML_FILES
KINDS = ("ModelServing", "ModelInfer", "ModelBooster", "Model")
GROUP = "volcano.sh/"


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every role of a ModelServing, and of every worker of a ModelBooster."""
    for item in of_kind(document, *KINDS, group=GROUP):
        if kind(item) in ("ModelServing", "ModelInfer"):
            yield from _of_roles(item, document)
        else:
            yield from _of_backends(item, document)


def _of_roles(item: Mapping, document: Document) -> Iterator[Launch]:
    """An entry pod and its workers make one instance."""
    from shardlint.manifests import _pods, _roles

    base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
    for entry in _roles.entries(item.get("spec", "template", "roles")):
        entry_pod, worker = entry.get("entryTemplate", "spec"), entry.get("workerTemplate", "spec")
        workers = _pods.number(entry.get("workerReplicas"))
        own = _roles.role(base, entry.get("name") or "", entry.get("replicas"), _with_entry(workers))
        has_workers = isinstance(workers, Unknown) or (workers is not None and workers.value > 0)
        given = partial(_variables, own.pods)
        yield from _roles.group(entry_pod, worker if has_workers else None, own, document, given)


def _with_entry(workers: Maybe[int] | None) -> Maybe[int]:
    if workers is None:
        return Located(1, origin="default", source="a role without workers")
    if isinstance(workers, Unknown):
        return workers
    return Located(workers.value + 1, workers.span, workers.spelled, "derived", f"the entry + {workers.value} workers")


def _variables(size: Maybe[int] | None, role: str) -> dict[str, Maybe[str]]:
    """What the controller adds to every container."""
    from shardlint.manifests import _roles

    at_run_time = Unknown("set when the pod starts, by the ModelServing controller")
    leads = role == "leader"
    return {
        "ENTRY_ADDRESS": at_run_time,
        "GROUP_SIZE": _roles.as_text(size, at_run_time),
        "WORKER_INDEX": Located("0", origin="derived", source="the entry's index") if leads else at_run_time,
    }


# ModelBooster


def _of_backends(item: Mapping, document: Document) -> Iterator[Launch]:
    from shardlint.manifests import _pods, _roles

    base = _pods.launch_of(item, NAME)
    backend, several = item.get("spec", "backend"), item.get("spec", "backends")
    for own in (backend, *_roles.entries(several)):
        if own is None:
            continue
        copies = _pods.number(own.get("replicas") or own.get("minReplicas"))
        for worker in _roles.entries(own.get("workers")):
            yield from _of_worker(worker, own, base._replace(replicas=copies), document)


def _of_worker(worker: Node, backend: Node, base: Launch, document: Document) -> Iterator[Launch]:
    """What the controller starts: the engine that the backend's type names, with the worker's `config` as its flags."""
    from shardlint.manifests import _addresses, _devices, _environment, _pods, _resources, _roles, _stated

    engine = text(backend.get("type")).lower()
    if "vllm" not in engine and "sglang" not in engine:
        return
    words = _stated.VLLM if "vllm" in engine else (*_stated.SGLANG, "--model-path")
    own = _roles.role(base, worker.get("type") or "", worker.get("replicas"), _pods.number(worker.get("pods")))
    env = _environment.environment(backend, document, {})
    model = _addresses.model_at(backend.get("modelURI"))
    yield own._replace(
        argv=_stated.command(words, own.at, model or Unknown("the modelURI is not written", own.at)),
        settings=_flags(worker.get("config")),
        env=env,
        image=_pods.image_of(worker.get("image")),
        gpus_per_pod=_devices.usable(_resources.requested(worker), env),
        gpu=_resources.device_name(worker),
        unit=f"{own.name}:{own.at.line}",
    )


def _flags(config: Node | None) -> tuple[ConfigEntry, ...]:
    """The worker's `config`; a key with an empty value is a flag that stands alone."""
    from shardlint.manifests import _stated

    return tuple(
        entry._replace(value=entry.value.with_value(True))
        if isinstance(entry.value, Located) and entry.value.value == ""
        else entry
        for entry in _stated.entries(config)
    )
