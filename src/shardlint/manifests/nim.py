"""NVIDIA NIM: `NIMService` and `NIMPipeline` of its operator, and the values of its chart.

A NIM serves the model that its image is named after. How it cuts the model is a profile, chosen when it starts by the
GPUs that it finds, unless a variable or the cache beside it says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _claims, _devices, _resources, _stated
from shardlint.manifests._objects import YAML_FILES, kind, name, of_kind, place, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library

NAME = "nim"
FILES = YAML_FILES
KINDS = ("NIMService", "NIMPipeline")
WITHOUT = ("kind",)
SERVE = ("nim-serve",)
SIZE, PROFILE = "NIM_TENSOR_PARALLEL_SIZE", "NIM_MODEL_PROFILE"
_SAYS_SIZE = Pattern(r"tp\d")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launch of every NIM that the document's objects or values describe."""
    for item in of_kind(document, *KINDS):
        if kind(item) == "NIMService":
            yield from _service(item.get("spec"), name(item), item, document, library)
            continue
        services = item.get("spec", "services")
        for service in services if isinstance(services, Sequence) else ():
            if text(service.get("enabled")) != "false":
                named = f"{name(item)}/{text(service.get('name'))}"
                yield from _service(service.get("spec"), named, item, document, library)
    yield from _values(document)


def _service(spec: Node | None, named: str, item: Mapping, document: Document, library: Library) -> Iterator[Launch]:
    from shardlint.manifests import _cards, _pods
    from shardlint.manifests._environment import environment

    if spec is None:
        return
    at = place(item)
    env = environment(spec, document, _profile(spec))
    parallel = spec.get("multiNode", "parallelism")
    settings = (
        *_stated.entry("tensor-parallel-size", parallel, "tensor"),
        *_stated.entry("pipeline-parallel-size", parallel, "pipeline"),
    )
    cache = _cache(spec, document, library)
    cards = [_resources.requested(spec), *_claimed(spec, document)]
    yield Launch(
        named,
        kind(item),
        NAME,
        at,
        argv=_argv(spec, env, at),
        settings=(*(settings or _of_cache(cache, env, at)), *_cached_model(cache, env)),
        env=env,
        image=image(spec.get("image")),
        gpu=_cards.named(spec) or _resources.device_name(spec) or _card_of(cache),
        gpus_per_pod=_devices.usable(_devices.added([part for part in cards if part is not None]), env),
        pods=_pods.number(parallel.get("pipeline")) if parallel is not None else None,
        replicas=_pods.number(spec.get("replicas") or spec.get("scale", "hpa", "minReplicas")),
        unit=f"{named}:{at.line}",
    )


def _argv(spec: Node, env: dict[str, Maybe[str]], at: Span) -> tuple[Word, ...]:
    from shardlint.manifests._values import fragments, word

    command, arguments = (
        tuple(word(fragment) for fragment in fragments(spec.get(part), env)) for part in ("command", "args")
    )
    return (*(command or _stated.command(SERVE, at)), *arguments)


def image(node: Node | None) -> Maybe[str] | None:
    """An image in two fields (`repository`, `tag`) or in one."""
    from shardlint.manifests._pods import image_of
    from shardlint.manifests._values import value_of

    if not isinstance(node, Mapping):
        return image_of(node)
    repository, tag = image_of(node.get("repository")), node.get("tag")
    if not isinstance(repository, Located) or not isinstance(tag, Scalar) or not text(tag):
        return repository
    written = value_of(tag)
    return written if isinstance(written, Unknown) else written.with_value(f"{repository.value}:{written.value}")


def _claimed(spec: Node, document: Document) -> Iterator[Maybe[int]]:
    """Devices by Dynamic Resource Allocation: claims by name, or described in place."""
    claims = spec.get("draResources")
    for claim in claims if isinstance(claims, Sequence) else ():
        devices = claim.get("claimCreationSpec", "devices")
        if isinstance(devices, Sequence):
            yield from (_claims.count(device) for device in devices)
            continue
        named = text(claim.get("resourceClaimTemplateName") or claim.get("resourceClaimName"))
        yield from _claims.of_object(named, claim, document)


def _cache(spec: Node, document: Document, library: Library) -> Node | None:
    """The source of the NIMCache that the service names; older services name it in another place."""
    from shardlint.manifests._neighbours import near

    named = text(spec.get("storage", "nimCache", "name") or spec.get("nimCache", "name"))
    cache = near(document, library, named, "NIMCache") if named else None
    return cache.get("spec", "source") if cache is not None else None


def _profile(spec: Node) -> dict[str, Maybe[str]]:
    """The variable that the operator makes of the profile that a service takes from its cache."""
    from shardlint.manifests._values import value_of

    profile = spec.get("storage", "nimCache", "profile")
    return {PROFILE: value_of(profile)} if isinstance(profile, Scalar) and text(profile) else {}


def _of_cache(cache: Node | None, env: dict[str, Maybe[str]], at: Span) -> tuple[ConfigEntry, ...]:
    stated = _stated.entry("tensor-parallel-size", cache, "ngc", "model", "tensorParallelism")
    profile = env.get(PROFILE)
    if stated or SIZE in env or (isinstance(profile, Located) and _SAYS_SIZE.search(profile.value)):
        return stated
    reason = "NIM chooses a profile by the GPUs that it finds"
    unknown = Unknown(reason, at, "", "NIM_MODEL_PROFILE, or tensorParallelism in the NIMCache")
    return (ConfigEntry(Located("tensor-parallel-size", at, origin="derived"), unknown),)


def _cached_model(cache: Node | None, env: dict[str, Maybe[str]]) -> tuple[ConfigEntry, ...]:
    """The hub's model in the cache of an image that serves any."""
    from shardlint.manifests._values import value_of

    owner, model = (cache.get("hf", part) if cache is not None else None for part in ("namespace", "modelName"))
    if not isinstance(model, Scalar) or not isinstance(owner, Scalar) or "NIM_MODEL_NAME" in env:
        return ()
    named, of = value_of(model), value_of(owner)
    if isinstance(named, Located) and isinstance(of, Located):
        named = Located(f"{of.value}/{named.value}", named.span, named.spelled, "derived", "namespace and modelName")
    return (ConfigEntry(Located("model", model.span, "modelName", "derived"), named),)


def _card_of(cache: Node | None) -> Maybe[str] | None:
    """The only product for which the cache holds builds."""
    from shardlint.manifests._values import value_of

    cards = cache.get("ngc", "model", "gpus") if cache is not None else None
    only = cards.get(0, "product") if isinstance(cards, Sequence) and len(cards) == 1 else None
    return value_of(only) if isinstance(only, Scalar) and not only.is_null else None


def _values(document: Document) -> Iterator[Launch]:
    """The NIMs in values of charts: at the top, or one below each key of a chart that has several."""
    root = document.root
    if not isinstance(root, Mapping) or "kind" in root:
        return
    if _is_nim(root):
        yield _of_values(root, "values", root, document)
        return
    for key, part in root.items():
        if _is_nim(part) and text(part.get("enabled")) != "false":
            yield _of_values(part, f"values/{key.text}", key, document)


def _is_nim(values: Node) -> bool:
    repository = text(values.get("image", "repository"))
    return "/nim/" in repository or repository.startswith("nim/")


def _of_values(values: Node, named: str, at: Node, document: Document) -> Launch:
    from shardlint.manifests import _cards, _pods
    from shardlint.manifests._addresses import model_at
    from shardlint.manifests._environment import environment

    place_of = (values.get("image", "repository") or at).span
    env = environment(values, document, {})
    model = model_at(values.get("model", "name"))
    multiple = values.get("multiNode", "enabled")
    pods = None
    if multiple is not None and text(multiple) == "true":
        pods = Unknown("the chart makes the group of pods", multiple.span, multiple.spelled)
    argv = _argv(values, env, place_of)
    return Launch(
        named,
        "values",
        NAME,
        place_of,
        argv=argv if model is None else (*argv, *_stated.command(("--model",), place_of, model)),
        settings=_of_cache(None, env, place_of),
        env=env,
        image=image(values.get("image")),
        gpu=_cards.named(values) or _resources.device_name(values),
        gpus_per_pod=_devices.usable(_resources.requested(values), env),
        pods=pods,
        replicas=_pods.number(values.get("replicaCount")),
        unit=f"{named}:{place_of.line}",
    )
