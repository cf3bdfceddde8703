"""Ray Serve applications: LLM configs of Ray and of the older RayLLM, and applications told by environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Container, Launch, RayApplication
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _devices, _installs, _roles, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._pods import number
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

PARTS = {"prefill_config": "prefill", "decode_config": "decode", "llm_config": ""}
"""Arguments of the builders that take one LLM config each, and the name of that part of the application."""
MODELS = ("MODEL_ID", "MODEL_NAME", "HF_MODEL_ID", "MODEL_PATH", "LLM_MODEL", "MODEL")
SIZES = {
    "TENSOR_PARALLELISM": "tensor-parallel-size",
    "TENSOR_PARALLEL_SIZE": "tensor-parallel-size",
    "TP_SIZE": "tensor-parallel-size",
    "PIPELINE_PARALLELISM": "pipeline-parallel-size",
    "PIPELINE_PARALLEL_SIZE": "pipeline-parallel-size",
    "MAX_MODEL_LEN": "max-model-len",
    "GPU_MEMORY_UTILIZATION": "gpu-memory-utilization",
    "DTYPE": "dtype",
    "QUANTIZATION": "quantization",
    "MAX_NUM_SEQS": "max-num-seqs",
    "MAX_NUM_BATCHED_TOKENS": "max-num-batched-tokens",
}
"""Variables by which applications with code of their own are told what they hand to the engine."""
_PREFIXED = re.compile(r"(\w+_)MODEL_ID|(MODEL_\w+_)ID")
_WORLD = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


class Cluster(NamedTuple):
    """The workers of the Ray cluster that serves the applications."""

    image: Maybe[str] | None = None
    gpus_per_pod: Maybe[int] | None = None
    gpu: Maybe[str] | None = None
    hosts: Maybe[int] | None = None
    """Pods that one worker consists of (TPU slices over several hosts)."""
    env: tuple[str, ...] = ()
    """Names of the variables of the workers."""
    container: Container | None = None
    """What surrounds the ranks on a worker."""
    all_gpus: Maybe[int] | None = None
    """Of all workers."""


NO_CLUSTER = Cluster()


def is_llm_config(node: Node | None) -> bool:
    """Whether a mapping is the configuration of one model."""
    return isinstance(node, Mapping) and (
        isinstance(node.get("model_loading_config"), Mapping)
        or (isinstance(node.get("engine_config"), Mapping) and isinstance(node.get("deployment_config"), Mapping))
    )


def launches_of(application: Node, base: Launch, cluster: Cluster = NO_CLUSTER) -> Iterator[Launch]:
    """The launches of one application of a Serve config; a file that it refers to stands for itself."""
    configs = list(_configs(application.get("args")))
    for part, config in configs:
        if not is_llm_config(config):
            yield base._replace(at=config.span)
            continue
        named = part or (text(_name_of(config)) if len(configs) > 1 else "")
        own = base._replace(unit=f"{base.unit}/{config.start}")
        if named:
            own = own._replace(name=f"{base.name}/{named}", at=(_name_of(config) or config).span)
        told = RayApplication(builder=_builder(application), cluster_cards=cluster.all_gpus)
        yield from of_llm_config(config, own._replace(ray=told), cluster, application.get("runtime_env"))
    if not configs and isinstance(application, Mapping):
        yield from _of_environment(application, base, cluster)


def _configs(arguments: Node | None) -> Iterator[tuple[str, Node]]:
    """The LLM configs of an application, by the names of their parts; a path stands for a file that holds one."""
    if arguments is None:
        return
    if is_llm_config(arguments):
        yield "", arguments
    for name in ("llm_configs", "models"):
        for config in _roles.entries(arguments.get(name)):
            yield "", config
    for name, part in PARTS.items():
        one = arguments.get(name)
        if isinstance(one, Mapping | Scalar):
            yield part, one


def of_llm_config(
    config: Node, base: Launch, cluster: Cluster = NO_CLUSTER, runtime_env: Node | None = None
) -> Iterator[Launch]:
    """The engine that Ray starts for one LLM config, and what it installs before."""
    at = base.at
    model = _model(config)
    command = _stated.SGLANG if "sglang" in text(config.get("llm_engine")).lower() else _stated.VLLM
    settings = (
        *_stated.entries(config.get("engine_kwargs") or config.get("engine_config", "engine_kwargs")),
        *_stated.entry("tensor-parallel-size", config, "tensor_parallelism", "degree"),
        *_stated.entry("tensor-parallel-size", config, "scaling_config", "num_workers"),
        *_executor(config, at),
    )
    if command is _stated.SGLANG and model is not None:
        settings += (ConfigEntry(Located("model-path", model.span, "model", "derived"), model),)
        model = None
    deployment = config.get("deployment_config")
    gpus = cluster.gpus_per_pod if cluster is not NO_CLUSTER else _packed(config.get("placement_group_config"))
    card = config.get("accelerator_type")
    yield from _installed(base, runtime_env, config.get("runtime_env"))
    yield base._replace(
        argv=_stated.command(command, at, model),
        settings=settings,
        image=cluster.image,
        gpus_per_pod=gpus,
        gpu=value_of(card) if isinstance(card, Scalar) and not card.is_null else cluster.gpu,
        pods=_pods(settings, gpus, cluster),
        replicas=_copies(deployment),
        shares_pods=True,
        container=cluster.container,
        ray=(base.ray or RayApplication())._replace(bundles=_bundles(config.get("placement_group_config"))),
    )


def _builder(application: Node) -> Located[str] | None:
    path = application.get("import_path")
    return Located(path.text, path.span, path.spelled) if isinstance(path, Scalar) and not path.is_null else None


def _bundles(group: Node | None) -> tuple[Maybe[int], ...]:
    """The cards of each bundle that asks for some."""
    written = group.get("bundles") if group is not None else None
    counts = [number(bundle.get("GPU")) for bundle in _roles.entries(written)]
    return tuple(count for count in counts if count is not None)


def _name_of(config: Node) -> Node | None:
    """The name that the model is served by."""
    return config.get("model_loading_config", "model_id") or config.get("engine_config", "model_id")


def _model(config: Node) -> Maybe[str] | None:
    """Where the weights come from, else the name that the model is served by."""
    for path in (
        ("model_loading_config", "model_source"),
        ("model_loading_config", "model_source", "bucket_uri"),
        ("model_loading_config", "model_id"),
        ("engine_config", "hf_model_id"),
        ("engine_config", "model_id"),
    ):
        node = config.get(*path)
        if isinstance(node, Scalar) and not node.is_null:
            return value_of(node)
    return None


def _executor(config: Node, at: Span) -> Iterator[ConfigEntry]:
    """Ray Serve runs vLLM's ranks as actors of its own, whether or not somebody writes so."""
    if config.get("engine_kwargs", "distributed_executor_backend") is None:
        yield ConfigEntry(
            Located("distributed-executor-backend", at, "", "derived"),
            Located("ray", at, "", "derived", "Ray Serve starts the ranks"),
        )


def _copies(deployment: Node | None) -> Maybe[int] | None:
    if deployment is None:
        return None
    scaling = deployment.get("autoscaling_config")
    nodes = [deployment.get("num_replicas")]
    nodes += [scaling.get(name) for name in ("initial_replicas", "min_replicas")] if scaling is not None else []
    return next((count for node in nodes if (count := number(node)) is not None), None)


def _packed(group: Node | None) -> Maybe[int] | None:
    """The cards of the one node on which a placement group insists; None where it does not."""
    if group is None or text(group.get("strategy")) != "STRICT_PACK":
        return None
    return _devices.added(list(_bundles(group)))


def _pods(settings: tuple[ConfigEntry, ...], gpus: Maybe[int] | None, cluster: Cluster) -> Maybe[int] | None:
    """The workers over which Ray spreads the ranks of one copy; it fills one before it takes the next."""
    several = isinstance(cluster.hosts, Located) and cluster.hosts.value > 1
    ranks = _ranks(settings)
    if not isinstance(gpus, Located) or not gpus.value or ranks is None:
        return cluster.hosts if several else None
    pods = -(-ranks // gpus.value)
    return Located(pods, gpus.span, gpus.spelled, "derived", f"{ranks} ranks on workers of {gpus.value} GPUs")


def _ranks(settings: tuple[ConfigEntry, ...]) -> int | None:
    """All ranks of one copy; None where a size is not known."""
    ranks = 1
    for key, value in settings:
        if key.value.replace("-", "_") in _WORLD:
            size = _devices.count(value.with_value(str(value.value))) if isinstance(value, Located) else value
            if isinstance(size, Unknown):
                return None
            ranks *= size.value
    return ranks


def _installed(base: Launch, *environments: Node | None) -> Iterator[Launch]:
    for environment in environments:
        pip = environment.get("pip") if environment is not None else None
        packages = pip.get("packages") if isinstance(pip, Mapping) else pip
        yield from _installs.launches(packages, base)


# Applications with code of their own


def _of_environment(application: Mapping, base: Launch, cluster: Cluster) -> Iterator[Launch]:
    """An application whose code starts an engine with what its variables and arguments say, or one for each model."""
    engine = _engine(application, cluster)
    if engine is None:
        return
    yield from _installed(base, application.get("runtime_env"))
    models = _models(application)
    for prefix, model in models:
        own = base
        if len(models) > 1 and model.span is not None:
            own = base._replace(name=f"{base.name}/{prefix.strip('_').lower()}", at=model.span)
        yield _of_model(application, prefix, model, engine, own, cluster)


def _of_model(
    application: Mapping, prefix: str, model: Maybe[str], engine: tuple[str, ...], base: Launch, cluster: Cluster
) -> Launch:
    variables, arguments = application.get("runtime_env", "env_vars"), application.get("args")
    settings = tuple(
        ConfigEntry(Located(flag, node.span, name, "derived"), value_of(node))
        for name, flag in SIZES.items()
        if (node := _scalar(variables, prefix + name) or _scalar(variables, name) or _scalar(arguments, name.lower()))
    )
    pods = _pods(settings, cluster.gpus_per_pod, cluster) if settings else _pods((), None, cluster)
    if engine is _stated.SGLANG:
        settings += (ConfigEntry(Located("model-path", model.span, "model", "derived"), model),)
    code = application.get("import_path")
    more = Unknown("the application's code decides", code.span if code else base.at, code.spelled if code else "")
    parts = list(_roles.entries(application.get("deployments")))
    copies = next((number(part.get("num_replicas")) for part in parts), None)
    held = [number(part.get("ray_actor_options", "num_gpus")) for part in parts]
    return base._replace(
        argv=(*_stated.command(engine, base.at, model if engine is _stated.VLLM else None), more),
        settings=settings,
        image=cluster.image,
        gpus_per_pod=cluster.gpus_per_pod,
        gpu=cluster.gpu,
        pods=pods,
        replicas=copies,
        shares_pods=True,
        container=cluster.container,
        ray=RayApplication(
            builder=_builder(application),
            actor_cards=_devices.added([count for count in held if count is not None]),
            cluster_cards=cluster.all_gpus,
        ),
    )


def _engine(application: Mapping, cluster: Cluster) -> tuple[str, ...] | None:
    """The engine that is named wherever an application or its workers may name one."""
    runtime = application.get("runtime_env")
    said = [text(application.get("import_path")), *cluster.env]
    for node in (runtime.get("pip") if runtime else None, runtime.get("env_vars") if runtime else None):
        said += [key.text for key, _ in node.items()] if isinstance(node, Mapping) else []
        said += [text(entry) for entry in node] if isinstance(node, Sequence) else [text(node)]
    packages = runtime.get("pip", "packages") if runtime is not None else None
    said += [text(entry) for entry in _roles.entries(packages)]
    said += [text(part.get("name")) for part in _roles.entries(application.get("deployments"))]
    image = cluster.image
    said.append((image.value if isinstance(image, Located) else image.spelled) if image is not None else "")
    words = " ".join(said).lower()
    return _stated.VLLM if "vllm" in words else _stated.SGLANG if "sglang" in words else None


def _models(application: Mapping) -> list[tuple[str, Maybe[str]]]:
    """The model that variables or arguments name; of several (`A_MODEL_ID`, `MODEL_1_ID`) each with its prefix."""
    variables, arguments = application.get("runtime_env", "env_vars"), application.get("args")
    for name in MODELS:
        if (node := _scalar(variables, name) or _scalar(arguments, name.lower())) is not None:
            return [("", value_of(node))]
    several: list[tuple[str, Maybe[str]]] = [
        (match[1] or match[2], value_of(value))
        for key, value in (variables.items() if isinstance(variables, Mapping) else ())
        if isinstance(value, Scalar) and (match := _PREFIXED.fullmatch(key.text)) is not None
    ]
    code = application.get("import_path")
    place, spelled = (code.span, code.spelled) if code is not None else (None, "")
    return several or [("", Unknown("the application's code names the model", place, spelled))]


def _scalar(fields: Node | None, name: str) -> Scalar | None:
    node = fields.get(name) if fields is not None else None
    return node if isinstance(node, Scalar) and not node.is_null else None
