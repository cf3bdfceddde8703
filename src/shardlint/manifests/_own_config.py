"""Configurations that a project wrote for its own launcher of vLLM: its flags under vLLM's names, in sections."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _chart_values, _devices, _stated
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

_TELLING = frozenset(
    (
        "tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "max-model-len",
        "gpu-memory-utilization", "kv-cache-dtype", "max-num-seqs", "max-num-batched-tokens",
    )
)  # fmt: skip
_ARGUMENTS = re.compile(r"(?:additional|extra|vllm|engine|server)_?args")
_CARDS = ("gpu_ids", "gpus", "devices", "device_ids", "cuda_visible_devices", "visible_devices")
_COUNTS = ("num_gpus", "gpu_count", "n_gpus", "gpus")


def launches_of(root: Mapping, form: str) -> Iterator[Launch]:
    """The launch; nothing where the file does not speak of vLLM, or says less than two of its flags and a model."""
    source = root.source
    if "vllm" not in source.text.lower() and "vllm" not in source.path.lower():
        return
    if any("vllm" in key.text.lower() for key, _ in root.items()):
        return  # charts' values call their sections so
    sections = [root, *(value for _, value in root.items() if isinstance(value, Mapping))]
    if any(section.get("image") is not None for section in sections):
        return  # and they name the image that the launcher is in
    stated = [entry for section in sections for entry in _chart_values.stated(section)]
    model = _model(root.get("model"))
    if model is None or len({entry.key.value for entry in stated} & _TELLING) < 2:
        return
    at = next(iter(root.items()))[0].span
    name = source.path.replace("\\", "/").rpartition("/")[2]
    argv = _stated.command(_stated.VLLM, at, model)
    rest = Unknown("the launcher that reads this file may add other flags", at, settle_by="checking its command")
    yield Launch(
        name,
        "config",
        form,
        at,
        argv=(*argv, *(word for section in sections for word in _words(section)), rest),
        settings=tuple(_once(stated)),
        gpus_per_pod=next((cards for section in sections if (cards := _cards(section)) is not None), None),
        unit=name,
    )


def _once(entries: list[ConfigEntry]) -> Iterator[ConfigEntry]:
    """Of several places that state the same flag the first."""
    seen: set[str] = set()
    for entry in entries:
        if entry.key.value not in seen:
            seen.add(entry.key.value)
            yield entry


def _model(node: Node | None) -> Maybe[str] | None:
    for path in ((), ("name",), ("id",), ("path",), ("model_id",), ("model_name",), ("name_or_path",), ("repo",)):
        held = node.get(*path) if node is not None and path else node
        if isinstance(held, Scalar) and not held.is_null and held.text.strip():
            return value_of(held)
    return None


def _words(section: Mapping) -> Iterator[Maybe[str]]:
    for key, value in section.items():
        if isinstance(value, Sequence) and _ARGUMENTS.fullmatch(key.text.lower()):
            yield from (value_of(word) for word in value if isinstance(word, Scalar))


def _cards(section: Mapping) -> Maybe[int] | None:
    for name in _CARDS:
        listed = section.get(name)
        if isinstance(listed, Sequence) and len(listed):
            return Located(len(listed), listed.span, listed.spelled, "derived", f"the entries of {name}")
        if isinstance(listed, Scalar) and re.fullmatch(r"\d+(?:\s*,\s*\d+)+", listed.text):
            return _devices.listed(value_of(listed))
    for name in _COUNTS:
        count = section.get(name)
        if isinstance(count, Scalar) and count.text.isdigit():
            return _devices.count(value_of(count))
    return None
