"""The built-in catalogue: structural facts of well-known models, each row with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.facts.geometry import Geometry, read
from shardlint.facts.packing import unpack
from shardlint.facts.tables import keys_ending, row_by_folded_key, row_by_key

TABLE = "models.jsonl"


def find(model_id: str) -> Geometry | None:
    """The geometry of the model of that id, letter by letter, else without regard to case."""
    row = row_by_key(TABLE, model_id) or row_by_folded_key(TABLE, model_id)
    return _geometry(row, model_id) if row else None


def namesakes(name: str) -> Iterator[Geometry]:
    """The models that have that name under any organisation."""
    for model_id in keys_ending(TABLE, f"/{name}"):
        if found := find(model_id):
            yield found


def _geometry(row: Mapping[str, Any], model_id: str) -> Geometry:
    config = unpack(row["config"])
    for stated in ("weight_bytes", "weight_bytes_with_mtp"):
        if stated in row:
            config[stated] = row[stated]
    side_files = unpack(row.get("side_files", {}))
    origin = f"catalogue: {row['source']}"
    return read(config, model_id, side_files, origin=origin, catalogue_id=row["id"])
