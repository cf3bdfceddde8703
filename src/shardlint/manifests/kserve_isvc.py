"""InferenceService of KServe and OME: a model, the runtime that serves it, and what the service lays over that.

Where the runtime stands neither in the file nor beside it, its name and the model's format tell the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Span
from shardlint.findings.patterns import Pattern
from shardlint.manifests._objects import YAML_FILES, of_kind, of_kind_in_file, place, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import Library

NAME = "kserve-isvc"
FILES = YAML_FILES
KINDS = ("InferenceService",)
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sglang", ("python3", "-m", "sglang.launch_server")),
    ("vllm", ("python3", "-m", "vllm.entrypoints.openai.api_server")),
    (r"(?:tensorrt|trt)[-_]?llm", ("trtllm-serve",)),
    ("tgi|text-generation-inference", ("text-generation-launcher",)),
    ("nim", ("nim-serve",)),
    ("huggingface(?:server)?", ("python3", "-m", "huggingfaceserver")),
)
"""What the runtimes start that have such a name, or serve a format of such a name."""
MODEL_FLAGS = {"sglang": "model-path", "tgi|text-generation-inference": "model-id", "nim": None}
"""How the model is named to those that do not call it `model`; NIM brings its own."""
DEPLOYMENT_MODE = "serving.kserve.io/deploymentMode"
KNATIVE = ("Serverless", "Knative")
OTHER_TASKS = Pattern(r"--task[= ]?(?:fill_mask|token_classification|sequence_classification|text_embedding)")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every InferenceService in the document."""
    for item in of_kind(document, *KINDS):
        if text(item.get("apiVersion")).startswith("ome.io/"):
            yield from _of_ome(item, document, library)
        else:
            yield from _of_kserve(item, document, library)


def _of_kserve(item: Mapping, document: Document, library: Library) -> Iterator[Launch]:
    from shardlint.manifests import _pods

    predictor = item.get("spec", "predictor")
    if not isinstance(predictor, Mapping):
        return
    base = _pods.launch_of(item, NAME, predictor.get("minReplicas"))
    model = predictor.get("model") or predictor.get("huggingface")
    if not isinstance(model, Mapping):
        for launch in _pods.launches(predictor, base, document):
            yield _by_knative(launch, item, predictor)
        return
    from shardlint.manifests import _runtimes

    runtime = _runtime(item, document, library)
    if runtime is None:
        yield from _by_name(item, predictor, model, base, document)
        return
    over = _runtimes.Over(model, predictor, _storage(model), predictor.get("workerSpec"))
    for launch in _runtimes.launches(runtime, base, document, over):
        yield _by_knative(launch, item, predictor)


def _by_knative(launch: Launch, item: Mapping, predictor: Mapping) -> Launch:
    """Knative's services have no `hostIPC`: it is dropped from their pods."""
    from shardlint.manifests import _surroundings

    if text(item.get("metadata", "annotations", DEPLOYMENT_MODE)) not in KNATIVE:
        return launch
    around = _surroundings.without_host_ipc(launch.container, predictor, "Knative leaves hostIPC out")
    return launch._replace(container=around)


def _runtime(item: Mapping, document: Document, library: Library) -> Mapping | None:
    """The runtime that is named; else the only one of the file that KServe may choose for the format."""
    from shardlint.manifests import _neighbours, _runtimes

    named = _runtimes.runtime_name(item)
    if named:
        return _neighbours.near(document, library, named, *_runtimes.RUNTIMES)
    others = of_kind_in_file(document.source, *_runtimes.RUNTIMES)
    fitting = [other for other in others if _runtimes.uses(item, other)]
    return fitting[0] if len(fitting) == 1 else None


def _storage(model: Node) -> Maybe[str] | None:
    """Where the model is stored: an address, or a path in a store that a Secret describes."""
    from shardlint.manifests._addresses import model_at

    return (
        model_at(model.get("storageUri"))
        or model_at(model.get("storage", "storageUri"))
        or model_at(model.get("storage", "path"))
    )


def _by_name(item: Mapping, predictor: Mapping, model: Mapping, base: Launch, document: Document) -> Iterator[Launch]:
    """The launch of a service whose runtime is not at hand."""
    from shardlint.manifests import _cards, _devices, _pods, _resources, _stated
    from shardlint.manifests._environment import environment
    from shardlint.manifests._values import fragments, word

    env = environment(model, document, {})
    command, arguments = (
        tuple(word(fragment) for fragment in fragments(model.get(part), env)) for part in ("command", "args")
    )
    cards = _devices.usable(_resources.requested(model), env)
    shared = base._replace(
        env=env,
        image=_pods.image_of(model.get("image")),
        gpu=_cards.named(predictor) or _resources.device_name(model),
        gpus_per_pod=cards,
        unit=f"{base.name}:{base.at.line}",
    )
    if command:
        yield shared._replace(at=command[0].span or base.at, argv=(*command, *arguments))
        return
    engine = _engine(item, model)
    if engine is None or (engine.startswith("hugging") and not _is_generative(arguments, cards)):
        yield shared._replace(argv=arguments, entrypoint_of_image=True)
        return
    yield shared._replace(
        argv=(*_stated.command(dict(COMMANDS)[engine], place(item)), *arguments),
        settings=_settings(engine, model, base.at),
        pods=_pods.number(predictor.get("workerSpec", "pipelineParallelSize")),
    )


def _settings(engine: str, model: Mapping, at: Span) -> tuple[ConfigEntry, ...]:
    flag, stored = MODEL_FLAGS.get(engine, "model"), _storage(model)
    if flag is None or stored is None:
        return ()
    return (ConfigEntry(Located(flag, stored.span or at, flag, "derived"), stored),)


def _engine(item: Mapping, model: Mapping) -> str | None:
    """The pattern of COMMANDS that the runtime's name has, else the format's."""
    from shardlint.manifests._runtimes import runtime_name

    for name in (runtime_name(item).lower(), text(model.get("modelFormat", "name")).lower()):
        for pattern, _ in COMMANDS:
            if re.search(rf"(?<![a-z])(?:{pattern})(?![a-z])", name):
                return pattern
    return None


def _is_generative(arguments: tuple[Word, ...], cards: Maybe[int] | None) -> bool:
    """Whether KServe's server has a language model to serve, which it gives to vLLM: it serves other models too."""
    words = " ".join(argument.value if isinstance(argument, Located) else argument.spelled for argument in arguments)
    return cards is not None and not OTHER_TASKS.search(words) and "--backend=huggingface" not in words


def _of_ome(item: Mapping, document: Document, library: Library) -> Iterator[Launch]:
    """OME's service names a model and a runtime, whose parts it may replace."""
    from shardlint.manifests import _neighbours, _pods, _runtimes

    named = _runtimes.runtime_name(item)
    runtime = _neighbours.near(document, library, named, *_runtimes.RUNTIMES) if named else None
    base = _pods.launch_of(item, NAME, item.get("spec", "engine", "minReplicas"))
    if runtime is not None:
        yield from _runtimes.launches(runtime, base, document)
        return
    yield base  # its runtime is elsewhere
    for part in ("engine", "decoder"):
        own = item.get("spec", part)
        if isinstance(own, Mapping) and (own.get("runner") or own.get("leader")) is not None:
            yield from _runtimes.of_part(own, base._replace(name=f"{base.name}/{part}"), document)
