"""LLMInferenceService of KServe, and the LLMInferenceServiceConfig that it is based on.

The controller starts `vllm serve /mnt/models $VLLM_ADDITIONAL_ARGS` where the container has no command of its own, and
adds the sizes of `parallelism`: all of them where it spreads an instance over several pods, else `tensor` alone.
Arguments without a command go behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests._objects import YAML_FILES, kind, name, objects_of_file, of_kind, place, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library

NAME = "kserve-llmisvc"
FILES = YAML_FILES
CONFIG = "LLMInferenceServiceConfig"
KINDS = ("LLMInferenceService", CONFIG)
MAIN = "main"
"""The container that serves the model; others are sidecars."""
ADDITIONAL = "VLLM_ADDITIONAL_ARGS"
DEVICE_COUNT = "serving.kserve.io/exp-dra-device-count"
DEVICE_CONTAINER = "serving.kserve.io/exp-dra-container-name"
DEVICE_SELECTOR = "serving.kserve.io/exp-dra-cel-selector"
_SELECTED = Pattern(r"\[['\"](?:type|productName)['\"]\](?:\.\w+)?\s*==\s*['\"]([^'\"]+)['\"]")
PARALLELISM = {
    "tensor": "tensor-parallel-size",
    "pipeline": "pipeline-parallel-size",
    "data": "data-parallel-size",
    "dataLocal": "data-parallel-size-local",
    "expert": "enable-expert-parallel",
}
SINGLE_POD = ("tensor",)
"""What of it the controller's template for one pod takes; the rest changes nothing there."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every such object in the document: one for its pods, or one each for decode and prefill."""
    for item in of_kind(document, *KINDS):
        spec = item.get("spec")
        if not isinstance(spec, Mapping) or _is_base(item, document):
            continue
        bases = _bases(item, document, library)
        prefill = spec.get("prefill")
        workloads = [("decode", spec), ("prefill", prefill)] if isinstance(prefill, Mapping) else [("", spec)]
        for role, workload in workloads:
            if isinstance(workload, Mapping):
                yield from _Workload(item, role, workload, bases, document).launches()


def _base_names(item: Mapping) -> list[str]:
    references = item.get("spec", "baseRefs")
    return [text(reference.get("name")) for reference in (references if isinstance(references, Sequence) else ())]


def _is_base(item: Mapping, document: Document) -> bool:
    """Whether it is a configuration that a service of the same file is based on, and is read with."""
    named = text(item.get("metadata", "name"))
    return kind(item) == CONFIG and any(named in _base_names(other) for other, _ in objects_of_file(document.source))


def _bases(item: Mapping, document: Document, library: Library) -> tuple[Mapping, ...]:
    """The configurations that the service names, the last first, which goes over those before it."""
    from shardlint.manifests._neighbours import near

    found = [near(document, library, reference, CONFIG) for reference in _base_names(item)]
    specs = [other.get("spec") for other in found if other is not None]
    return tuple(spec for spec in reversed(specs) if isinstance(spec, Mapping))


class _Workload:
    """The pods that decode, or do all, or prefill."""

    def __init__(self, item: Mapping, role: str, own: Mapping, bases: tuple[Mapping, ...], document: Document) -> None:
        self.item = item
        self.role = role
        self.document = document
        below = [spec.get("prefill") if role == "prefill" else spec for spec in bases]
        self.specs: tuple[Node, ...] = (own, *(spec for spec in below if spec is not None))
        spec = item.get("spec")
        self.whole: tuple[Node, ...] = (*((spec,) if spec is not None else ()), *bases)

    def first(self, *path: str) -> Node | None:
        """What the object says at a path, else what it is based on."""
        return next((found for spec in self.specs if (found := spec.get(*path)) is not None), None)

    def launches(self) -> Iterator[Launch]:
        from shardlint.manifests import _pods

        base = _pods.launch_of(self.item, NAME, self.first("replicas") or self.first("scaling", "minReplicas"))
        base = base._replace(
            name=f"{name(self.item)}/{self.role}" if self.role else base.name,
            pods=self._pods(),
            group=f"{base.name}:{base.at.line}/{self.role}",
        )
        yield from self._of("template", base._replace(role="leader"))
        yield from self._of("worker", base._replace(role="worker"))

    def _of(self, part: str, base: Launch) -> Iterator[Launch]:
        """The launches of the container that serves."""
        from shardlint.manifests import _runtimes, _surroundings

        pods = [pod for spec in self.specs if isinstance(pod := spec.get(part), Mapping)]
        container = _main(pods[0]) if pods else None
        if container is None:
            return
        lower, pod, over = container, pods[0], _runtimes.NOTHING_OVER
        based = next(((main, below) for below in pods[1:] if (main := _main(below)) is not None), None)
        if based is not None and container.get("args") is None:
            (lower, pod), over = based, _runtimes.Over(container, pods[0])
        model = self._model()
        for launch in _runtimes.container_launches(lower, pod, base, self.document, {}, over):
            launch = launch._replace(
                gpu=launch.gpu or self._selected(),
                gpus_per_pod=launch.gpus_per_pod or self._claimed(container),
                container=_surroundings.with_operators_memory(launch.container),
            )
            by_controller = launch.entrypoint_of_image
            if by_controller or self.spread:
                launch = launch._replace(settings=self._sizes())
            if by_controller:
                launch = self._started(launch, container)._replace(unused_sizes=self._unused())
            if model is None and kind(self.item) == CONFIG:
                model = Unknown("the service that is based on this configuration names the model", place(self.item))
            yield launch._replace(argv=_runtimes.with_model(launch.argv, model))

    @property
    def spread(self) -> bool:
        """Whether an instance takes several pods, whose command the controller gives the sizes."""
        return self.first("worker") is not None and self.first("parallelism") is not None

    def _started(self, launch: Launch, container: Mapping) -> Launch:
        """The controller's command, with the arguments in the variable for them and those that are written."""
        from shardlint.manifests import _stated

        start = _stated.command((*_stated.VLLM, "/mnt/models"), launch.at)
        argv = (*start, *_additional(container, launch.env), *launch.argv)
        return launch._replace(argv=argv, entrypoint_of_image=False)

    def _model(self) -> Maybe[str] | None:
        """Where the model comes from: the service's, whatever its pods."""
        from shardlint.manifests._addresses import model_at

        return next((model for spec in self.whole if (model := model_at(spec.get("model", "uri"))) is not None), None)

    def _sizes(self) -> tuple[ConfigEntry, ...]:
        from shardlint.manifests._stated import entry

        stated = self.first("parallelism")
        fields = PARALLELISM if self.spread else SINGLE_POD
        return tuple(found for field in fields for found in entry(PARALLELISM[field], stated, field))

    def _unused(self) -> tuple[Located[int], ...]:
        """Sizes above 1 that the template for one pod does not take."""
        from shardlint.manifests import _pods

        stated = self.first("parallelism")
        if stated is None or self.spread:
            return ()
        sizes = [_pods.number(stated.get(field)) for field in ("pipeline", "data")]
        return tuple(size for size in sizes if isinstance(size, Located) and size.value > 1)

    def _pods(self) -> Maybe[int] | None:
        """Pods of one instance: the data-parallel ranks by those of a pod, or the stages."""
        from shardlint.manifests import _pods

        stated = self.first("parallelism")
        if stated is None or not self.spread:
            return None
        data, local, pipeline = (_pods.number(stated.get(name)) for name in ("data", "dataLocal", "pipeline"))
        if isinstance(data, Located) and isinstance(local, Located) and local.value:
            reason = f"data {data.value} / dataLocal {local.value}"
            return Located(max(data.value // local.value, 1), data.span, data.spelled, "derived", reason)
        return data if isinstance(data, Unknown) else local if isinstance(local, Unknown) else pipeline

    def _claimed(self, container: Mapping) -> Maybe[int] | None:
        """Devices that annotations claim for the container."""
        from shardlint.manifests import _pods

        notes = self.item.get("metadata", "annotations")
        if notes is None or text(notes.get(DEVICE_CONTAINER)) not in ("", text(container.get("name"))):
            return None
        return _pods.number(notes.get(DEVICE_COUNT))

    def _selected(self) -> Maybe[str] | None:
        """The card that the selector of those devices names."""
        selector = self.item.get("metadata", "annotations", DEVICE_SELECTOR)
        if not isinstance(selector, Scalar):
            return None
        fragment = selector.fragment()
        found = _SELECTED.search(fragment.text)
        return Located(found.group(1), fragment.span(*found.span(1)), found.group(1)) if found else None


def _main(pod: Mapping) -> Mapping | None:
    from shardlint.manifests._pods import serving_containers

    containers = list(serving_containers(pod))
    return next((item for item in containers if text(item.get("name")) == MAIN), containers[0] if containers else None)


def _additional(container: Mapping, env: EnvMapping[str, Maybe[str]]) -> Iterator[Word]:
    """The words of the variable for additional arguments."""
    from shardlint.manifests._interpolation import split
    from shardlint.manifests._values import fragment_of, word

    variables = container.get("env")
    for variable in variables if isinstance(variables, Sequence) else ():
        value = variable.get("value")
        if text(variable.get("name")) == ADDITIONAL and isinstance(value, Scalar):
            yield from (word(part) for part in split(fragment_of(value, env)))
            return
    if (written := env.get(ADDITIONAL)) is not None:
        yield Unknown("its words are not in this file", written.span, f"${ADDITIONAL}")
