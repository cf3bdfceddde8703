"""Recipes of srt-slurm: the prefill, decode and aggregated workers of one Slurm job, and the nodes of each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _devices, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar

_ROLES = (("prefill", "prefill"), ("decode", "decode"), ("agg", "aggregated"))
"""As the resources call them, and as the engine's arguments do."""
_WORKERS = {
    "vllm": ("python3", "-m", "dynamo.vllm"),
    "sglang": ("python3", "-m", "dynamo.sglang"),
    "trtllm": ("python3", "-m", "dynamo.trtllm"),
}
"""By engine, the worker behind Dynamo's frontend; it takes flags of its own beside the engine's."""
_DIRECT = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG, "trtllm_serve": ("trtllm-serve",)}
"""By the type of another frontend, what serves it."""
_STANDS_ALONE = ("serve", "trtllm-serve")
"""Commands that take the model as a word."""
_MODEL_FLAGS = {"vllm": "model"}
"""Of the others, for engines that do not call it `model-path`."""
_MODEL_KEYS = ("model", "model-path", "model_path")
_SQUASHED = re.compile(r"(?:.*/)?([^/]+\+[^/]+)\+([^/+]+)\.sqsh")
"""An image's reference as the name of a file, with a plus for each of its separators."""


class _Role(NamedTuple):
    """The workers of one kind: how many, on what, with which arguments."""

    name: str
    nodes: Node | None
    workers: Node | None
    gpus: Node | None
    """Of one worker, over all of its nodes."""
    environment: Node | None
    arguments: Node | None


def launches_of(recipe: Mapping, form: str) -> Iterator[Launch]:
    """One launch for each kind of workers that the recipe starts."""
    engine, roles = _roles(recipe)
    command = _DIRECT.get(text(recipe.get("frontend", "type")) or "", _WORKERS.get(engine))
    if command is None:
        return
    per_node = _number(recipe.get("resources", "gpus_per_node"))
    shared = next((total for role in roles if (total := _number(role.gpus)) is not None), None)
    for role in roles:
        workers, nodes = _number(role.workers), _number(role.nodes)
        if (role.nodes is None and role.workers is None) or _is_zero(workers):
            continue
        total = _total(role, nodes, workers, per_node, shared)
        at = (role.nodes or role.workers or recipe).span
        name = "/".join(part for part in ("srt", text(recipe.get("name")), role.name) if part)
        yield Launch(
            name,
            "srt job",
            form,
            at,
            argv=_stated.command(command, at, _model(recipe, role) if command[-1] in _STANDS_ALONE else None),
            settings=(*_stated.entries(role.arguments), *_model_flag(recipe, role, engine, command)),
            env=_environment(recipe.get("environment"), role.environment),
            image=_image(recipe),
            gpus_per_pod=_fewer(total, per_node),
            gpu=_word(recipe.get("resources", "gpu_type")),
            pods=_nodes_of(total, per_node, role.nodes),
            replicas=workers,
            unit=name,
            is_spread=True,
        )


def _roles(recipe: Mapping) -> tuple[str, list[_Role]]:
    """The engine and its kinds of workers, in the layout with `roles`, else in the older one."""
    if isinstance(roles := recipe.get("roles"), Mapping):
        parts = ("nodes", "workers", "gpus", "env", "args")
        found = [
            _Role(called, *(role.get(part) for part in parts))
            for name, called in _ROLES
            if (role := roles.get(name)) is not None
        ]
        return text(recipe.get("engine")) or "sglang", found
    engine = text(recipe.get("backend", "type")) or "sglang"
    resources, backend = recipe.get("resources"), recipe.get("backend")
    if resources is None or backend is None:
        return "", []
    return engine, [
        _Role(
            called,
            resources.get(f"{name}_nodes"),
            resources.get(f"{name}_workers"),
            resources.get(f"gpus_per_{name}"),
            backend.get(f"{called}_environment"),
            backend.get(f"{engine}_config", called),
        )
        for name, called in _ROLES
    ]


def _number(node: Node | None) -> Maybe[int] | None:
    return _devices.count(value_of(node)) if isinstance(node, Scalar) and not node.is_null else None


def _word(node: Node | None) -> Maybe[str] | None:
    return value_of(node) if isinstance(node, Scalar) and not node.is_null else None


def _is_zero(count: Maybe[int] | None) -> bool:
    return isinstance(count, Located) and count.value == 0


def _total(
    role: _Role,
    nodes: Maybe[int] | None,
    workers: Maybe[int] | None,
    per_node: Maybe[int] | None,
    shared: Maybe[int] | None,
) -> Maybe[int] | None:
    """The cards of one worker: as written, else its part of the nodes; on the nodes of others, as many as theirs."""
    if role.gpus is not None:
        return _number(role.gpus)
    if _is_zero(nodes) or text(role.nodes) == "colocate":
        return shared
    if not isinstance(nodes, Located) or not isinstance(workers, Located) or not isinstance(per_node, Located):
        return next((part for part in (nodes, workers, per_node) if isinstance(part, Unknown)), None)
    cards = nodes.value * per_node.value
    terms = f"{nodes.value} nodes x {per_node.value} GPUs / {workers.value} workers"
    if cards % workers.value:
        return Unknown(f"{terms} does not come out even", nodes.span, nodes.spelled)
    return Located(cards // workers.value, nodes.span, nodes.spelled, "derived", terms)


def _fewer(total: Maybe[int] | None, per_node: Maybe[int] | None) -> Maybe[int] | None:
    """The cards of each node of a worker."""
    if isinstance(total, Located) and isinstance(per_node, Located):
        return min(per_node, total, key=lambda number: int(number.value))
    return total if isinstance(total, Unknown) else per_node


def _nodes_of(total: Maybe[int] | None, per_node: Maybe[int] | None, written: Node | None) -> Maybe[int] | None:
    if not isinstance(total, Located) or not isinstance(per_node, Located) or not per_node.value:
        return None
    place = total if written is None else written
    terms = f"{total.value} GPUs of a worker / {per_node.value} of a node"
    return Located(-(-total.value // per_node.value), place.span, place.spelled, "derived", terms)


def _model(recipe: Mapping, role: _Role) -> Word | None:
    """The id where the recipe says which it is, else the path; None where the arguments name one."""
    if isinstance(role.arguments, Mapping) and any(key in role.arguments for key in _MODEL_KEYS):
        return None
    return _word(recipe.get("identity", "model", "repo")) or _word(recipe.get("model", "path"))


def _model_flag(recipe: Mapping, role: _Role, engine: str, command: tuple[str, ...]) -> Iterator[ConfigEntry]:
    """For a command that takes the model by a flag."""
    if command[-1] not in _STANDS_ALONE and _model(recipe, role) is not None:
        identity = recipe.get("identity", "model", "repo") is not None
        path = ("identity", "model", "repo") if identity else ("model", "path")
        yield from _stated.entry(_MODEL_FLAGS.get(engine, "model-path"), recipe, *path)


def _environment(*layers: Node | None) -> dict[str, Maybe[str]]:
    return {
        key.text: word
        for layer in layers
        if isinstance(layer, Mapping)
        for key, value in layer.items()
        if (word := _word(value)) is not None
    }


def _image(recipe: Mapping) -> Maybe[str] | None:
    """The image where the recipe identifies it, else the container, whose file may be named after an image."""
    image = _word(recipe.get("identity", "container", "image")) or _word(recipe.get("model", "container"))
    squashed = _SQUASHED.fullmatch(image.value) if isinstance(image, Located) else None
    if squashed is None or not isinstance(image, Located):
        return image
    return image.with_value(f"{squashed[1].replace('+', '/')}:{squashed[2]}")
