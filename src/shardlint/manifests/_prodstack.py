"""What vLLM's production-stack makes of its values and objects: https://github.com/vllm-project/production-stack

The chart starts `vllm serve` with the fields of `vllmConfig` as flags; with `raySpec` it starts it on a Ray cluster of
one head and `replicaCount` workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardlint.deployment import ConfigEntry, Container, Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import (
    _addresses,
    _cards,
    _devices,
    _pods,
    _quantities,
    _resources,
    _roles,
    _stated,
    _surroundings,
)
from shardlint.manifests._environment import variables
from shardlint.manifests._objects import text
from shardlint.manifests._values import fragments, value_of, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping as MappingNode
from shardlint.text.nodes import Node, Scalar

FLAGS = {
    "tensorParallelSize": "tensor-parallel-size",
    "pipelineParallelSize": "pipeline-parallel-size",
    "dataParallelSize": "data-parallel-size",
    "maxModelLen": "max-model-len",
    "maxNumSeqs": "max-num-seqs",
    "gpuMemoryUtilization": "gpu-memory-utilization",
    "dtype": "dtype",
    "enablePrefixCaching": "enable-prefix-caching",
    "enableChunkedPrefill": "enable-chunked-prefill",
    "maxLoras": "max-loras",
    "runner": "runner",
    "convert": "convert",
}
"""Fields of `vllmConfig`, and the flags that the chart makes of them."""


def of_values(values: MappingNode, form: str, document: Document) -> Iterator[Launch]:
    """The launches of the models of one chart."""
    engines = values.get("servingEngineSpec")
    if engines is None or text(engines.get("enableEngine")) == "false":
        return
    models = engines.get("modelSpec")
    for model in [models] if isinstance(models, MappingNode) else _roles.entries(models):
        if not isinstance(model, MappingNode) or _is_off(model):
            continue
        named = model.get("name") or model.get("modelURL")
        base = Launch(f"values/{text(named)}", "values", form, (named or model).span)
        yield _of_model(model, base, engines, document)


def _is_off(model: MappingNode) -> bool:
    return text(model.get("enabled")) == "false" or text(model.get("replicaCount")) == "0"


def _of_model(model: MappingNode, base: Launch, engines: Node, document: Document) -> Launch:
    env: Mapping[str, Maybe[str]] = variables(model.get("env"), document, variables(engines.get("env"), document, {}))
    visible = model.get("lmcacheConfig", "cudaVisibleDevices")
    if isinstance(visible, Scalar) and not visible.is_null:
        env = {**env, "CUDA_VISIBLE_DEVICES": value_of(visible)}
    config = model.get("vllmConfig")
    url = _addresses.model_at(model.get("modelURL")) or Unknown("no modelURL is written", base.at)
    copies = _pods.number(model.get("replicaCount"))
    in_cluster = text(model.get("raySpec", "enabled")) == "true"
    return base._replace(
        argv=_argv(base, url, config.get("extraArgs") if config is not None else None, env),
        settings=(*_settings(config), *(_on_ray(base) if in_cluster else ())),
        env=env,
        image=_image(model),
        gpus_per_pod=_devices.usable(_requested(model), env),
        gpu=_card(model),
        pods=_with_head(copies) if in_cluster else None,
        replicas=None if in_cluster else copies,
        unit=f"{base.name}:{base.at.line}",
        container=_around(model, config, in_cluster),
    )


def _around(model: MappingNode, config: Node | None, in_cluster: bool) -> Container:
    """The chart mounts memory at /dev/shm where `vllmConfig` has the tensor size as its own field, or Ray runs."""
    limit = _scalar(model.get("limitMemory"))
    around = Container(
        more_shared_memory=("vllmConfig.tensorParallelSize instead of the flag in extraArgs",),
        memory_limit=_quantities.kubernetes(limit) if limit is not None else None,
    )
    if in_cluster or (config is not None and config.get("tensorParallelSize") is not None):
        size = _scalar(model.get("shmSize"))
        return around._replace(shared_memory=_quantities.kubernetes(size) if size is not None else None)
    return around._replace(shared_memory=_surroundings.DEFAULT_SHM)


def _argv(base: Launch, model: Maybe[str], more: Node | None, env: Mapping[str, Maybe[str]]) -> tuple[Word, ...]:
    given = (word(fragment) for fragment in fragments(more, env))
    return (*_stated.command(_stated.VLLM, base.at, model), *given)


def _settings(*holders: Node | None) -> Iterator[ConfigEntry]:
    """The fields that are flags; of several holders the first that has a field says it."""
    for field, flag in FLAGS.items():
        for holder in holders:
            if found := _stated.entry(flag, holder, field):
                yield from found
                break


def _on_ray(base: Launch) -> Iterator[ConfigEntry]:
    """What the chart adds where it starts a Ray cluster."""
    flag = Located("distributed-executor-backend", base.at, "raySpec", "derived")
    yield ConfigEntry(flag, Located("ray", base.at, "raySpec", "derived", "raySpec"))


def _image(model: MappingNode) -> Maybe[str] | None:
    """`repository` and `tag`, where the tag is written."""
    repository, tag = (_scalar(model.get(key)) for key in ("repository", "tag"))
    if not isinstance(repository, Located) or tag is None:
        return repository
    if isinstance(tag, Unknown):
        return tag
    return tag.with_value(f"{repository.value}:{tag.value}")


def _scalar(node: Node | None) -> Maybe[str] | None:
    return value_of(node) if isinstance(node, Scalar) and not node.is_null and node.text else None


def _requested(model: MappingNode) -> Maybe[int] | None:
    """`requestGPU`, or `resources` as a pod has them; of a Ray cluster that of a worker."""
    return _pods.number(model.get("requestGPU")) or _resources.requested(model)


def _card(model: MappingNode) -> Maybe[str] | None:
    """The card by the node that is asked for, or the resource where that names one."""
    kind = _scalar(model.get("requestGPUType"))
    labels = _cards.of_labels(_cards.of_terms(model.get("nodeSelectorTerms")))
    if labels is None and isinstance(kind, Located) and _resources.names_kind(kind.value):
        return kind
    return labels or _cards.named(model)


def _with_head(workers: Maybe[int] | None) -> Maybe[int]:
    if workers is None:
        return Unknown("the number of workers is not written")
    if isinstance(workers, Unknown):
        return workers
    return Located(workers.value + 1, workers.span, workers.spelled, "derived", f"a head + {workers.value} workers")


# VLLMRuntime


def of_runtime(item: MappingNode, form: str, document: Document) -> Iterator[Launch]:
    """The launch of a VLLMRuntime, whose fields stood in its `spec` before they were put in groups."""
    spec = item.get("spec")
    if spec is None:
        return
    parts = [spec.get(name) for name in ("vllmConfig", "model", "deploymentConfig")]
    holders = [part for part in (*parts, spec) if part is not None]

    def first(*path: str) -> Node | None:
        return next((node for holder in holders if (node := holder.get(*path)) is not None), None)

    base = _pods.launch_of(item, form, first("replicas"))
    env = variables(first("env"), document, {})
    url = _addresses.model_at(first("modelURL")) or Unknown("no modelURL is written", base.at)
    image, registry = _scalar(first("image", "name")), _scalar(first("image", "registry"))
    if isinstance(image, Located) and isinstance(registry, Located):
        image = image.with_value(f"{registry.value}/{image.value}")
    yield base._replace(
        argv=_argv(base, url, first("extraArgs"), env),
        settings=tuple(_settings(*holders)),
        env=env,
        image=image,
        gpus_per_pod=_devices.usable(_pods.number(first("resources", "gpu")), env),
        gpu=_cards.named(spec),
        unit=f"{base.name}:{base.at.line}",
    )
