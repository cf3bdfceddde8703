"""From the model id that an engine is given to its geometry."""

from __future__ import annotations

from shardlint.facts import config_json
from shardlint.facts.geometry import Geometry, read
from shardlint.findings import Unknown
from shardlint.text.source import Library


def geometry_of(model_id: str, library: Library) -> Geometry | Unknown:
    """The geometry of a model: the user's own files first, then the built-in catalogue."""
    files = library.model(model_id)
    if isinstance(files, Unknown):
        return files
    config, problems = config_json.clean(files.config)
    if problems:
        return problems[0]
    return read(config, model_id, {}, source=files.config, origin=files.origin)
