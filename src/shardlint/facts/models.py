"""From the model id that an engine is given to its geometry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from shardlint.facts import catalogue
from shardlint.facts.geometry import Geometry, read
from shardlint.facts.readers import INDEX_FILE
from shardlint.facts.settling import HUB_ID, settle_by
from shardlint.findings import Located, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.text.source import Library, ModelFiles, Source

QUANTISED = Pattern(
    r"[-_.](awq|gptq|fp8|fp4|nvfp4|mxfp4|mxfp8|int4|int8|4bit|8bit|bnb|gguf|exl[23]|hqq|w\d+a\d+|quantized|mlx|eetq|aqlm)"
    r"(?=$|[-_.\d])",
    re.IGNORECASE,
)
"""Names of quantised copies: they pad widths and choose groups as they please, whatever they were made from."""
COMPARED = (
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "hidden_size",
    "vocab_size",
    "num_experts",
)
_TOTAL_SIZE = Pattern(r'"total_size"\s*:\s*(\d{1,18})')


def geometry_of(
    model_id: str, library: Library, more: Mapping[str, Mapping[str, Any]] | None = None
) -> Geometry | Unknown:
    """The geometry of a model: the user's own files, then the catalogue, then what is known at second hand.

    `more` are contents of config.json by model id that stand before the catalogue.

    A model that only another organisation's copy of the same name is known of gets that copy's numbers, and
    `Geometry.assumption` says so.
    """
    files = library.model(model_id)
    if not isinstance(files, Unknown):
        return of_files(files)
    if more and model_id in more:
        return of_files(ModelFiles(model_id, Source(f"plugin:{model_id}", json.dumps(more[model_id])), (), "a plugin"))
    if not HUB_ID.fullmatch(model_id):
        return files._replace(settle_by=files.settle_by or settle_by(model_id))
    if (found := catalogue.find(model_id)) is not None:
        return found
    from shardlint.facts import second_hand  # the catalogue has most that are asked for

    return second_hand.find(model_id) or _of_namesake(model_id)


def of_files(files: ModelFiles) -> Geometry | Unknown:
    """The geometry of a config.json and its side files; Unknown with every fault that was found in them."""
    from shardlint.facts import config_json

    config, faults = config_json.clean(files.config)
    side_files: dict[str, Mapping[str, Any]] = {}
    for name, source in files.side_files:
        if name.endswith(".index.json"):
            side_files[INDEX_FILE] = _index(source)
        elif name.endswith(".json"):
            side_files[name], more = config_json.clean(source)
            faults += more
    if faults:
        reason = "; ".join(fault.reason for fault in faults)
        return Unknown(reason, faults[0].span, faults[0].spelled, settle_by(files.model_id))
    return read(config, files.model_id, side_files, source=files.config, origin=files.origin)


def _index(source: Source) -> dict[str, Any]:
    """Of an index only the total counts; its map of a hundred thousand names is not parsed."""
    total = _TOTAL_SIZE.search(source.text)
    return {"metadata": {"total_size": int(total[1])}} if total else {}


def _of_namesake(model_id: str) -> Geometry | Unknown:
    organisation, _, name = model_id.rpartition("/")
    if not organisation:
        return Unknown(f"{model_id} is not in the catalogue", settle_by=settle_by(model_id))
    if QUANTISED.search(name):
        reason = f"{model_id} is not in the catalogue, and a quantised copy may have other sizes than its base model"
        return Unknown(reason, settle_by=settle_by(model_id))
    from shardlint.facts import second_hand

    for known in (catalogue.namesakes(name), second_hand.namesakes(name, model_id)):
        copies = list(known)
        if copies:
            return _assumed(model_id, copies)
    return Unknown(f"{model_id} is not in the catalogue", settle_by=settle_by(model_id))


def _assumed(model_id: str, copies: list[Geometry]) -> Geometry | Unknown:
    first = copies[0]
    if any(_differ(first, other) for other in copies[1:]):
        ids = _listed(copy.model_id for copy in copies)
        return Unknown(
            f"{model_id} is not in the catalogue, and its namesakes differ: {ids}", settle_by=settle_by(model_id)
        )
    return first._replace(model_id=model_id, assumption=f"{model_id} has the geometry of {first.model_id}")


def _differ(one: Geometry, other: Geometry) -> bool:
    pairs = ((one.facts[name], other.facts[name]) for name in COMPARED)
    return any(
        isinstance(ours, Located) and isinstance(theirs, Located) and ours.value != theirs.value
        for ours, theirs in pairs
    )


def _listed(ids: Iterable[str], most: int = 4) -> str:
    names = list(ids)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
