"""Serving runtimes of KServe and OME: the containers that an operator starts for every service that names one.

A service's own fields go over those of its runtime: arguments behind, variables and resources in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _cards, _devices, _pods, _resources, _stated, _surroundings
from shardlint.manifests import _mounted as mounted
from shardlint.manifests._environment import environment
from shardlint.manifests._objects import of_kind_in_file, text
from shardlint.manifests._started import SHELLS, started
from shardlint.manifests._values import fragments, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Sequence

RUNTIMES = ("ServingRuntime", "ClusterServingRuntime")
SERVICE = "InferenceService"
MOUNTED = ("/mnt/models", "/mnt/models/")
"""Where KServe puts the model that a service stores elsewhere."""
SERVING = "kserve-container"
PARTS = ("engineConfig", "decoderConfig")
"""Of OME's runtimes: the server, or prefill and decode."""
SERVER = ("python3", "-m", "huggingfaceserver")
_SERVER_IMAGE = re.compile(r"(?:^|/)huggingfaceserver[^/]*$")
"""KServe's own server, and the images that start it."""
FILLED_IN = "filled in by the controller when a service uses the runtime"


class Over(NamedTuple):
    """What a service lays over its runtime."""

    container: Node | None = None
    """Arguments, variables, resources."""
    spec: Node | None = None
    """The pod: selectors, tolerations."""
    model: Maybe[str] | None = None
    """What stands where the runtime has the folder that models are put into."""
    worker: Node | None = None
    """Sizes over several nodes."""


NOTHING_OVER = Over()


def service_of(runtime: Mapping, document: Document) -> bool:
    """Whether a service of the same file uses the runtime, so that it is read with that one."""
    return any(uses(item, runtime) for item in of_kind_in_file(document.source, SERVICE))


def uses(service: Node, runtime: Node) -> bool:
    """Whether a service names the runtime, or names none and has a model of a format that the runtime is chosen for."""
    named = runtime_name(service)
    if named:
        return named == text(runtime.get("metadata", "name"))
    return supports(runtime, text(service.get("spec", "predictor", "model", "modelFormat", "name")))


def runtime_name(service: Node) -> str:
    """The runtime that a service of KServe or OME names."""
    return text(service.get("spec", "predictor", "model", "runtime") or service.get("spec", "runtime", "name"))


def launches(runtime: Mapping, base: Launch, document: Document, over: Over = NOTHING_OVER) -> Iterator[Launch]:
    """The launches of a runtime's containers."""
    spec = runtime.get("spec")
    if not isinstance(spec, Mapping):
        return
    parts = [(name, part) for name in PARTS if isinstance(part := spec.get(name), Mapping)]
    for name, part in parts:
        role = f"/{name.removesuffix('Config')}" if len(parts) > 1 else ""
        yield from of_part(part, base._replace(name=base.name + role), document)
    if not parts:
        yield from _of_containers(spec, base, document, over)


def _of_containers(spec: Mapping, base: Launch, document: Document, over: Over) -> Iterator[Launch]:
    """KServe's runtimes; `workerSpec` makes them run on several nodes."""
    worker = spec.get("workerSpec")
    pipeline, tensor = (_size(name, over.worker, worker) for name in ("pipelineParallelSize", "tensorParallelSize"))
    given = {
        name: _as_text(size)
        for name, size in (("PIPELINE_PARALLEL_SIZE", pipeline), ("TENSOR_PARALLEL_SIZE", tensor))
        if size is not None
    }
    if worker is not None or over.worker is not None:
        base = base._replace(pods=pipeline)
    containers = list(_pods.serving_containers(spec))
    serving = [item for item in containers if text(item.get("name")) == SERVING] or containers
    for container in serving:
        for launch in container_launches(container, spec, base, document, given, over):
            yield launch if over.container is not None else _open(launch, container)


def _open(launch: Launch, container: Node) -> Launch:
    """The launch of a runtime alone: every service that uses it may add arguments, which a script need not pass on."""
    first = container.get("command", 0)
    if text(first).rpartition("/")[2] in SHELLS:
        return launch
    reason = "arguments of the service that uses the runtime"
    return launch._replace(argv=(*launch.argv, Unknown(reason, launch.at, "$@", "reading it with the service")))


def container_launches(
    container: Mapping,
    spec: Mapping,
    base: Launch,
    document: Document,
    given: EnvMapping[str, Maybe[str]],
    over: Over = NOTHING_OVER,
) -> Iterator[Launch]:
    """The launches of one container, with what lies over it."""
    if over.container is None:
        for launch in _pods.container_launches(container, spec, base, document, given):
            yield _by_server(launch)
        return
    env = environment(over.container, document, environment(container, document, given))
    command = over.container.get("command") or container.get("command")
    arguments = [*fragments(container.get("args"), env), *fragments(over.container.get("args"), env)]
    cards = _resources.requested(over.container)
    shared = base._replace(
        image=_pods.image_of(over.container.get("image")) or _pods.image_of(container.get("image")),
        gpu=(over.spec and _cards.named(over.spec)) or _cards.named(spec) or _device(over.container, container),
        unit=f"{base.name}:{base.at.line}/{text(container.get('name'))}",
        container=_surroundings.of_pod((over.container, over.spec or spec), (container, spec)),
    )
    for item in mounted.commands(started(fragments(command, env), arguments, env, word), document):
        launch = shared._replace(
            at=item.at or base.at,
            argv=with_model(item.argv, over.model),
            env=item.env,
            entrypoint_of_image=item.entrypoint_of_image,
            gpus_per_pod=_devices.usable(cards if cards is not None else _resources.requested(container), item.env),
            conditional=item.conditional,
        )
        yield _by_server(launch, over.model)


def _by_server(launch: Launch, model: Maybe[str] | None = None) -> Launch:
    """The launch with the command of KServe's server where its image starts that."""
    if not launch.entrypoint_of_image or not isinstance(launch.image, Located):
        return launch
    if not _SERVER_IMAGE.search(launch.image.value):
        return launch
    named = () if model is None else (*_stated.command(("--model_dir",), launch.at), model)
    argv = (*_stated.command(SERVER, launch.at), *named, *launch.argv)
    return launch._replace(argv=argv, entrypoint_of_image=False)


def _device(*containers: Node) -> Located[str] | None:
    return next((found for container in containers if (found := _resources.device_name(container))), None)


def with_model(argv: tuple[Word, ...], model: Maybe[str] | None) -> tuple[Word, ...]:
    """The words with the model in the place of the folder that it is put into."""
    return argv if model is None else tuple(part for item in argv for part in _with_model(item, model))


def _with_model(item: Word, model: Maybe[str]) -> tuple[Word, ...]:
    if isinstance(item, Unknown):
        return (item,)
    flag, equals, value = item.value.rpartition("=")
    if value not in MOUNTED or (equals and not flag.startswith("-")):
        return (item,)
    return (item.with_value(flag), model) if equals else (model,)


def of_part(part: Mapping, base: Launch, document: Document) -> Iterator[Launch]:
    """OME's server: one container (`runner`), or a leader and workers with one each."""
    leader, worker = part.get("leader"), part.get("worker")
    base = base._replace(replicas=_pods.number(part.get("minReplicas")) or base.replicas)
    if not isinstance(leader, Mapping):
        yield from _of_runner(part, base, document, _variables(None))
        return
    pods = _group_size(worker)
    base = base._replace(pods=pods, group=f"{base.name}:{base.at.line}")
    yield from _of_runner(leader, base._replace(role="leader"), document, _variables(pods))
    if isinstance(worker, Mapping):
        yield from _of_runner(worker, base._replace(role="worker"), document, _variables(pods))


def _of_runner(spec: Mapping, base: Launch, document: Document, given: EnvMapping[str, Maybe[str]]) -> Iterator[Launch]:
    runner = spec.get("runner")
    if isinstance(runner, Mapping):
        yield from container_launches(runner, spec, base, document, given)
    else:
        yield from _pods.launches(spec, base, document, given)


def _group_size(worker: Node | None) -> Maybe[int]:
    """The leader and its workers."""
    size = _pods.number(worker.get("size")) if worker is not None else None
    if isinstance(size, Located):
        return Located(size.value + 1, size.span, size.spelled, "derived", f"1 leader + {size.value} workers")
    return size or Located(1 if worker is None else 2, origin="default", source="a leader and its workers")


def _variables(pods: Maybe[int] | None) -> dict[str, Maybe[str]]:
    """What OME adds to every container."""
    filled_in = Unknown(FILLED_IN)
    return {
        "MODEL_PATH": filled_in,
        "PARALLELISM_SIZE": filled_in,
        "LWS_GROUP_SIZE": filled_in if pods is None else _as_text(pods),
    }


def _size(name: str, *specs: Node | None) -> Maybe[int] | None:
    return next((size for spec in specs if spec is not None and (size := _pods.number(spec.get(name)))), None)


def _as_text(number: Maybe[int]) -> Maybe[str]:
    return number.with_value(str(number.value)) if isinstance(number, Located) else number


def supports(runtime: Node, model_format: str) -> bool:
    """Whether a runtime is chosen for models of a format when a service names none."""
    formats = runtime.get("spec", "supportedModelFormats")
    return bool(model_format) and any(
        text(entry.get("name")) == model_format and text(entry.get("autoSelect")) == "true"
        for entry in (formats if isinstance(formats, Sequence) else ())
    )
