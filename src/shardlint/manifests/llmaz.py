"""llmaz: Playgrounds, which name a model and a backend, and Services, which write the pods themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests._objects import YAML_FILES, kind, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

NAME = "llmaz"
FILES = YAML_FILES
KINDS = ("Playground", "Service")
GROUP = "llmaz.io/"
COMMANDS = {
    "vllm": ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model"),
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path"),
    "tgi": ("text-generation-launcher", "--model-id"),
    "tensorrt-llm": ("trtllm-serve", "--model"),
    "llamacpp": ("llama-server", "-m"),
}
"""How the backends that llmaz brings are started, up to the model."""
IMAGES = {
    "vllm": "vllm/vllm-openai",
    "sglang": "lmsysorg/sglang",
    "tgi": "ghcr.io/huggingface/text-generation-inference",
}


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every Playground and Service of llmaz in the document."""
    for item in of_kind(document, *KINDS, group=GROUP):
        if kind(item) == "Playground":
            yield from _playground(item, document, library)
        else:
            yield from _service(item, document)


def _service(item: Mapping, document: Document) -> Iterator[Launch]:
    from shardlint.manifests import _pods, lws

    base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
    yield from lws.of_template(item.get("spec", "workloadTemplate"), base, document)


def _playground(item: Mapping, document: Document, library: Library) -> Iterator[Launch]:
    """What the controller starts: the backend with the arguments that are written for it."""
    from shardlint.manifests import _devices, _environment, _pods, _resources

    spec = item.get("spec")
    if spec is None:
        return
    runtime = spec.get("backendRuntimeConfig")
    backend = text(runtime.get("backendName")) if runtime is not None else ""
    words = COMMANDS.get(backend or "vllm")
    if words is None:
        return
    base = _pods.launch_of(item, NAME, spec.get("replicas"))
    model = _main_model(spec, document, library)
    env = _environment.variables(
        runtime.get("envs") or runtime.get("env") if runtime is not None else None, document, {}
    )
    flavors = list(_flavors(model))
    cards = _resources.requested(runtime) if runtime is not None else None
    yield base._replace(
        argv=(*_command(words, base.at, model), *_arguments(runtime, env)),
        env=env,
        image=_image(backend or "vllm", runtime),
        gpus_per_pod=_devices.usable(cards or _one_count(flavors), env),
        gpu=_card(flavors),
        unit=f"{base.name}:{base.at.line}",
    )


def _main_model(spec: Node, document: Document, library: Library) -> Mapping | Unknown:
    """The OpenModel that is served; of several the one whose role is not to draft."""
    from shardlint.manifests import _roles
    from shardlint.manifests._neighbours import near

    claims = list(_roles.entries(spec.get("modelClaims", "models")))
    main = [claim.get("name") for claim in claims if text(claim.get("role")) != "draft"]
    claim = spec.get("modelClaim", "modelName") or (main[0] if main else None)
    found = near(document, library, text(claim), "OpenModel") if claim is not None else None
    if found is not None:
        return found
    where = (claim or spec).span
    return Unknown(
        f"the OpenModel {text(claim)} is not in this folder", where, text(claim), "putting the OpenModel beside"
    )


def _command(words: tuple[str, ...], at: Span, model: Mapping | Unknown) -> tuple[Word, ...]:
    from shardlint.manifests import _addresses, _stated

    if isinstance(model, Unknown):
        return _stated.command(words, at, model)
    source = model.get("spec", "source")
    address = (source.get("modelHub", "modelID") or source.get("uri")) if source is not None else None
    name = _addresses.model_at(address) or Unknown("the OpenModel names no source", model.span)
    return _stated.command(words, at, name)


def _arguments(runtime: Node | None, env: dict[str, Maybe[str]]) -> Iterator[Word]:
    from shardlint.manifests._values import fragments, word

    written = (runtime.get("args") or runtime.get("flags")) if runtime is not None else None
    return (word(fragment) for fragment in fragments(written, env))


def _image(backend: str, runtime: Node | None) -> Maybe[str] | None:
    """The backend's image, where the playground says its version."""
    from shardlint.manifests._values import value_of

    version = runtime.get("version") if runtime is not None else None
    if not isinstance(version, Scalar) or version.is_null or backend not in IMAGES:
        return None
    tag = value_of(version)
    return tag.with_value(f"{IMAGES[backend]}:{tag.value}") if isinstance(tag, Located) else tag


def _flavors(model: Mapping | Unknown) -> Iterator[Node]:
    from shardlint.manifests import _roles

    if not isinstance(model, Unknown):
        yield from _roles.entries(model.get("spec", "inferenceConfig", "flavors"))


def _one_count(flavors: list[Node]) -> Maybe[int] | None:
    """The cards of a flavor; flavors that differ are alternatives."""
    from shardlint.manifests import _resources

    counts = [_resources.counted(flavor) for flavor in flavors]
    if len({count.value if isinstance(count, Located) else None for count in counts}) > 1:
        return Unknown("the flavors of the model have different numbers of cards", flavors[0].span)
    return counts[0] if counts else None


def _card(flavors: list[Node]) -> Maybe[str] | None:
    """By the labels that a flavor selects, else its name, which is that of a card."""
    from shardlint.manifests import _cards, _pods

    if len(flavors) != 1:
        return Unknown("the model has several flavors", flavors[0].span, "", "--hardware") if flavors else None
    return _cards.named(flavors[0]) or _pods.image_of(flavors[0].get("name"))
