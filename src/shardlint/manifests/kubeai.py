"""KubeAI: `Model` objects, and the catalogue of models in the values of its chart."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests import _devices, _stated
from shardlint.manifests._objects import YAML_FILES, name, of_kind, place, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

NAME = "kubeai"
FILES = YAML_FILES
KINDS = ("Model",)
GROUP = "kubeai.org/"
KEYS = ("catalog",)
OLLAMA = ("ollama", "serve")
LLAMA_CPP = ("llama-server",)


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launch of every Model in the document, and of every model that a catalogue switches on."""
    for item in of_kind(document, *KINDS, group=GROUP):
        spec = item.get("spec")
        if spec is not None:
            yield _launch(spec, name(item), "Model", place(item))
    catalogue = document.root.get("catalog") if document.root is not None else None
    for key, model in catalogue.items() if isinstance(catalogue, Mapping) else ():
        if text(model.get("enabled")) == "true" and model.get("url") is not None:
            yield _launch(model, f"values/{key.text}", "values", key.span)


def _launch(spec: Node, named: str, kind: str, at: Span) -> Launch:
    from shardlint.manifests import _pods

    profile, count = _profile(spec.get("resourceProfile"))
    image = spec.get("image")
    return Launch(
        named,
        kind,
        NAME,
        at,
        argv=_argv(spec, at),
        env=_environment(spec),
        image=_pods.image_of(image),
        gpu=profile,
        gpus_per_pod=_devices.usable(count, _environment(spec)),
        replicas=_pods.number(spec.get("replicas") or spec.get("minReplicas")),
        unit=f"{named}:{at.line}",
    )


def _argv(spec: Node, at: Span) -> tuple[Word, ...]:
    """The command that the controller writes for the engine, and the arguments that are written for it."""
    from shardlint.manifests._addresses import model_at
    from shardlint.manifests._values import fragments, word

    engine = text(spec.get("engine")).lower() or "vllm"
    model = model_at(spec.get("url")) or Unknown("the url of the model is not written", at)
    arguments = tuple(word(fragment) for fragment in fragments(spec.get("args"), _environment(spec)))
    if engine == "vllm":
        return (*_stated.command((*_stated.VLLM, "--model"), at, model), *arguments)
    if engine == "sglang":
        return (*_stated.command((*_stated.SGLANG, "--model-path"), at, model), *arguments)
    if engine == "llamacpp":
        return (*_stated.command((*LLAMA_CPP, "--hf-repo"), at, model), *arguments)
    return (*_stated.command(OLLAMA if engine == "ollama" else (engine,), at), *arguments)


def _profile(node: Node | None) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    """`nvidia-gpu-l4:8`: the profile, which is named after its card, and how many of it."""
    from shardlint.manifests._values import value_of

    if not isinstance(node, Scalar) or node.is_null:
        return None, None
    written = value_of(node)
    if isinstance(written, Unknown):
        return written, written
    profile, colon, count = written.value.strip().rpartition(":")
    if (profile or count).lower().startswith("cpu"):
        return None, written.with_value(0)
    if not colon:
        return written, Unknown("the profile is named without a number", written.span, written.spelled)
    return written.with_value(profile), _devices.count(written.with_value(count))


def _environment(spec: Node) -> dict[str, Maybe[str]]:
    from shardlint.manifests._values import value_of

    variables = spec.get("env")
    if not isinstance(variables, Mapping):
        return {}
    return {
        key.text: Located("", value.span, value.spelled) if value.is_null else value_of(value)
        for key, value in variables.items()
        if isinstance(value, Scalar)
    }
