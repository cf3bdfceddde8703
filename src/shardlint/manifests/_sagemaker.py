"""Containers of SageMaker: their arguments, and the variables that its images make arguments of."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe
from shardlint.manifests import _installs, _lmi, _pods, _resources, _roles, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._started import started
from shardlint.manifests._values import fragments, value_of, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar

VLLM_PREFIX = "SM_VLLM_"
"""How the variables begin of which the vLLM image makes a flag each."""
EXTRA = "extra_env"
"""The key of a recipe's variables among its arguments."""
_ENGINES = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG}


def endpoint(item: Mapping, form: str, document: Document) -> Iterator[Launch]:
    """An InferenceEndpointConfig: a worker container on one machine for each copy."""
    spec = item.get("spec")
    worker = spec.get("worker") if spec is not None else None
    if spec is None or not isinstance(worker, Mapping):
        return
    base = _pods.launch_of(item, form, spec.get("replicas"))
    machine = spec.get("instanceType")
    base = base._replace(
        image=_pods.image_of(worker.get("image")),
        gpus_per_pod=_resources.requested(worker),
        gpu=_text(machine) or _resources.device_name(worker),
        unit=base.name,
    )
    env = dict(_variables(worker.get("environmentVariables")))
    command, arguments = (fragments(worker.get(part), env) for part in ("command", "args"))
    source = _stated.entry("model", spec, "modelSourceConfig", "huggingFaceModel", "modelId")
    for one in started(command, arguments, env, word):
        launch = base._replace(
            argv=one.argv,
            env=one.env,
            at=one.at or base.at,
            entrypoint_of_image=one.entrypoint_of_image,
            settings=source,
        )
        yield with_variables(launch)


def models(root: Mapping, form: str) -> Iterator[Launch]:
    """The containers of CreateModel's request, or of every AWS::SageMaker::Model of a template."""
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    resources = root.get("Resources")
    yield from _containers(root, Launch(text(root.get("ModelName")) or file, "model", form, root.span, unit=file))
    for key, resource in resources.items() if isinstance(resources, Mapping) else ():
        if text(resource.get("Type")) == "AWS::SageMaker::Model" and (found := resource.get("Properties")) is not None:
            name = f"AWS::SageMaker::Model/{key.text}"
            yield from _containers(found, Launch(name, "AWS::SageMaker::Model", form, key.span, unit=name))


def _containers(fields: Node, base: Launch) -> Iterator[Launch]:
    for container in (fields.get("PrimaryContainer"), *_roles.entries(fields.get("Containers"))):
        if isinstance(container, Mapping):
            image, env = _pods.image_of(container.get("Image")), _environment(container.get("Environment"))
            yield with_variables(base._replace(image=image, env=env, entrypoint_of_image=True))


def recipe(root: Mapping, deployment: Mapping, form: str) -> Iterator[Launch]:
    """A recipe that states the engine's arguments, its container's release and the machine."""
    engine = next((name for name in _ENGINES if isinstance(deployment.get(name), Mapping)), None)
    if engine is None:
        return
    called = root.get("name") or root
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    base = Launch(f"recipe/{text(called)}" if text(called) else file, "recipe", form, called.span, unit=file)
    release = deployment.get("container", "version")
    if isinstance(release, Scalar) and not release.is_null:
        pin = value_of(release)
        yield _installs.launch_of([pin.with_value(f"{engine}=={pin.value}") if isinstance(pin, Located) else pin], base)
    model = _text(deployment.get("model", "id"))
    arguments = deployment.get(engine)
    settings = tuple(found for found in _stated.entries(arguments) if found.key.value != EXTRA)
    if engine == "sglang" and model is not None:
        settings += (ConfigEntry(Located("model-path", model.span, "id", "derived"), model),)
    launch = base._replace(
        argv=_stated.command(_ENGINES[engine], base.at, model if engine == "vllm" else None),
        settings=settings,
        env=_environment(arguments.get(EXTRA) if arguments is not None else None),
        gpus_per_pod=_pods.number(deployment.get("hyperpod", "worker", "gpu_count")),
        gpu=_text(deployment.get("instance", "type")),
        replicas=_pods.number(deployment.get("hyperpod", "replicas"))
        or _pods.number(deployment.get("instance", "count")),
    )
    yield with_variables(launch)


def with_variables(launch: Launch) -> Launch:
    """The launch with the arguments that its image makes of variables."""
    flags = tuple(_flags_of(launch.env))
    image = launch.image.value if isinstance(launch.image, Located) else ""
    if flags:
        return launch._replace(settings=(*launch.settings, *flags)) if launch.argv else _of_vllm(launch, flags)
    if "djl" in image or (not launch.argv and any(name.startswith("OPTION_") for name in launch.env)):
        made = _lmi.launch_of(_lmi.options_of(launch.env), launch)
        return made._replace(argv=(*made.argv, *launch.argv), entrypoint_of_image=False)
    return launch


def _of_vllm(launch: Launch, flags: tuple[ConfigEntry, ...]) -> Launch:
    return launch._replace(
        argv=_stated.command(_stated.VLLM, launch.at), settings=(*launch.settings, *flags), entrypoint_of_image=False
    )


def _flags_of(env: EnvMapping[str, Maybe[str]]) -> Iterator[ConfigEntry]:
    for name, value in env.items():
        if name.startswith(VLLM_PREFIX):
            flag = name.removeprefix(VLLM_PREFIX).lower().replace("_", "-")
            yield ConfigEntry(Located(flag, value.span, name, "derived"), _lmi.plain(value))


def _environment(variables: Node | None) -> dict[str, Maybe[str]]:
    entries = variables.items() if isinstance(variables, Mapping) else ()
    return {key.text: value_of(value) for key, value in entries if isinstance(value, Scalar) and not value.is_null}


def _variables(node: Node | None) -> Iterator[tuple[str, Maybe[str]]]:
    for entry in _roles.entries(node):
        value = _text(entry.get("value"))
        if value is not None:
            yield text(entry.get("name")), value


def _text(node: Node | None) -> Maybe[str] | None:
    return value_of(node) if isinstance(node, Scalar) and not node.is_null else None
