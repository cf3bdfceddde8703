"""What LLMKube's controller makes of an InferenceService and its Model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe
from shardlint.manifests import _cards, _devices, _pods, _stated
from shardlint.manifests._chart_values import stated
from shardlint.manifests._environment import environment
from shardlint.manifests._neighbours import near
from shardlint.manifests._objects import text
from shardlint.manifests._values import fragments, value_of, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

_COMMANDS = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG, "": ("llama-server",), "llamacpp": ("llama-server",)}
_MODEL_FLAGS = {"vllm": "model", "sglang": "model-path"}
_HUB = re.compile(r"hf://([^@]+)(?:@.*)?")


def launches_of(item: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch]:
    """The one launch of an InferenceService; none for a runtime that is not known."""
    spec = item.get("spec")
    runtime = text(spec.get("runtime")) if spec is not None else "?"
    if spec is None or runtime not in _COMMANDS:
        return
    base = _pods.launch_of(item, form, spec.get("replicas"))
    model = near(document, library, text(spec.get("modelRef")), "Model")
    env = environment(spec, document, {})
    words = tuple(word(one) for one in fragments(spec.get("extraArgs") or spec.get("args"), env))
    yield base._replace(
        argv=(*_stated.command(_COMMANDS[runtime], base.at), *words),
        settings=tuple(_settings(spec, model, runtime)),
        env=env,
        image=_pods.image_of(spec.get("image")),
        gpus_per_pod=_devices.usable(_count(spec, model), env),
        gpu=_cards.named(spec),
    )


def _settings(spec: Node, model: Mapping | None, runtime: str) -> Iterator[ConfigEntry]:
    for part in ("vllmConfig", "sglangConfig"):
        yield from stated(spec.get(part))
    source = model.get("spec", "source") if model is not None else spec.get("modelRef")
    if isinstance(source, Scalar):
        yield ConfigEntry(
            Located(_MODEL_FLAGS.get(runtime, "model"), source.span, "source", "derived"), _source(value_of(source))
        )


def _source(value: Maybe[str]) -> Maybe[str]:
    """`hf://ORG/NAME@COMMIT` as the id that the engine is given."""
    if isinstance(value, Located) and (hub := _HUB.fullmatch(value.value)) is not None:
        return value.with_value(hub[1])
    return value


def _count(spec: Node, model: Mapping | None) -> Maybe[int] | None:
    """Cards: those that the service asks for, else those of the model's hardware."""
    asked = _pods.number(spec.get("resources", "gpu"))
    return asked or (_pods.number(model.get("spec", "hardware", "gpu", "count")) if model is not None else None)
