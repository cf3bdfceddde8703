"""Quantisation as a property of rows: what a checkpoint says of its method, and what that makes of every row."""

from shardlint.architectures.quantisation.checkpoint import least_bits, quantisation_of, quantization_config
from shardlint.architectures.rows import Rows
from shardlint.facts import Geometry

__all__ = ["least_bits", "quantisation_of", "quantised", "quantization_config"]


def quantised(rows: Rows, geometry: Geometry, quantization: str | None = None) -> Rows:
    """The rows with the storage of each; `bytes_unknown` is set where that of one is not known.

    `quantization` is the engine's option.  Of a plain checkpoint it changes nothing here: the engine builds the
    weights in the model's type and packs them when they are loaded.
    """
    stated = quantisation_of(geometry)
    if not isinstance(stated, str):
        return rows._replace(bytes_unknown=stated)
    from shardlint.architectures.quantisation import applying  # most checkpoints are plain

    return applying.stored_by(stated, rows, geometry, quantization)
