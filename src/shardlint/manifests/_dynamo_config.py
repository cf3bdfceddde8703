"""The configuration of `dynamo serve`: arguments by service, in a file or in DYN_DEPLOYMENT_CONFIG.

A service takes what stands under its own name, and of the arguments under `Common` those that its `common-configs`
names.  `ServiceArgs` are Dynamo's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests import _pods, _roles, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Fragment, Inset, Source

VARIABLE = "DYN_DEPLOYMENT_CONFIG"
ENGINE_ARGS = ("engine_args", "engine-args", "extra-engine-args", "extra_engine_args")
OWN_KEYS = frozenset({"ServiceArgs", "common-configs", *ENGINE_ARGS})
_WORKER = re.compile(r"(?:.*/)?components/(?:main|worker|(?:decode|prefill)_worker)\.py")
NO_ENGINES = ("frontend", "processor", "router", "planner", "encode", "mocker")
"""What the names of services say that start no engine."""
ENGINES = {"sglang": "dynamo.sglang", "trtllm": "dynamo.trtllm", "tensorrt": "dynamo.trtllm", "vllm": "dynamo.vllm"}


def launches_of(root: Mapping, form: str) -> Iterator[Launch]:
    """The launches of every service of a file that has GPUs."""
    names = " ".join(key.text for key, _ in root.items())
    for key, service in root.items():
        cards = _pods.number(service.get("ServiceArgs", "resources", "gpu"))
        if not isinstance(service, Mapping) or cards is None or _starts_none(key.text):
            continue
        yield Launch(
            f"service/{key.text}",
            "service",
            form,
            key.span,
            argv=(*_command(_module(key.text, names), key.span), *_elsewhere(service)),
            settings=arguments(root, key.text),
            gpus_per_pod=cards,
            replicas=_pods.number(service.get("ServiceArgs", "workers")),
            unit=key.text,
        )


def _starts_none(name: str) -> bool:
    return any(part in name.lower() for part in NO_ENGINES)


def resolved(launch: Launch, source: Source) -> Launch:
    """A launch of `dynamo serve ... --service-name NAME` as the engine that the service starts; any other as it is.

    So is the program of a worker that Dynamo's examples had before it had a module for each engine.
    """
    words = [word.value if isinstance(word, Located) else word.spelled for word in launch.argv]
    if len(words) > 1 and _WORKER.fullmatch(words[1]) and launch.gpus_per_pod is not None:
        module = _module(launch.image.value if isinstance(launch.image, Located) else "")
        return launch._replace(argv=(*_command(module, launch.at), *launch.argv[2:]))
    if [word.rpartition("/")[2] for word in words[:1]] + words[1:2] != ["dynamo", "serve"]:
        return launch
    service = _service_of(words)
    if not service or _starts_none(service) or launch.gpus_per_pod is None:
        return launch
    image = launch.image.value if isinstance(launch.image, Located) else ""
    command = _command(_module(service, image), launch.at)
    config = launch.env.get(VARIABLE)
    root = _root(config, source) if isinstance(config, Located) else None
    if root is None:
        return launch._replace(argv=(*command, _unread(config, launch.at)))
    own = root.get(service)
    return launch._replace(argv=(*command, *_elsewhere(own)), settings=arguments(root, service))


def _service_of(words: list[str]) -> str:
    for place, word in enumerate(words):
        if word.startswith("--service-name"):
            following = words[place + 1] if place + 1 < len(words) else ""
            return word.partition("=")[2] or following
    graph = words[2] if len(words) > 2 else ""
    return graph.rpartition(":")[2]


def _module(*hints: str) -> str:
    """The engine's module by the first hint that names one; vLLM's was the first engine, and its examples name none."""
    for hint in hints:
        for name, module in ENGINES.items():
            if name in hint.lower():
                return module
    return ENGINES["vllm"]


def _command(module: str, at: Span) -> tuple[Word, ...]:
    return _stated.command(("python3", "-m", module), at)


def _unread(config: Maybe[str] | None, at: Span) -> Unknown:
    """Why no arguments are known: the words that stand for them."""
    if isinstance(config, Unknown):
        return config._replace(spelled=f"${VARIABLE}_ARGS")
    return Unknown("the service's arguments are in a file of the image", at, "$SERVICE_ARGS", f"setting {VARIABLE}")


def _root(config: Located[str], source: Source) -> Mapping | None:
    """The JSON of the variable, with its places in the manifest."""
    from shardlint.text import yaml

    parsed = yaml.documents(Inset(_fragment(config, source)))
    roots = [document.root for document in parsed.documents]
    return roots[0] if len(roots) == 1 and isinstance(roots[0], Mapping) else None


def _fragment(config: Located[str], source: Source) -> Fragment:
    """The value where it is written; all of it at the beginning where it is not written in one piece."""
    span = config.span
    if span is None or span.path != source.path:
        return Fragment(config.value, source, [0] * (len(config.value) + 1))
    first, last = source.offset(span.line, span.column), source.offset(span.end_line, span.end_column)
    start = source.text.find(config.value, first, last)
    if start >= 0:
        return Fragment(config.value, source, range(start, start + len(config.value) + 1))
    return Fragment(config.value, source, [first] * len(config.value) + [last])


def _elsewhere(service: Node | None) -> Iterator[Word]:
    """The file of engine arguments that a service of TensorRT-LLM names."""
    for key in ENGINE_ARGS:
        named = service.get(key) if service is not None else None
        if isinstance(named, Scalar) and not named.is_null:
            yield Located("--extra-engine-args", named.span, key, "derived")
            yield value_of(named)


def arguments(root: Mapping, service: str) -> tuple[ConfigEntry, ...]:
    """What the engine of a service is given, that of its own name last."""
    own, common = root.get(service), root.get("Common")
    taken = {text(name) for name in _roles.entries(own.get("common-configs") if own is not None else None)}
    shared = [entry for entry in _stated.entries(common) if entry.key.value in taken]
    return tuple(entry for entry in (*shared, *_stated.entries(own)) if entry.key.value not in OWN_KEYS)
