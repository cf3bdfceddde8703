"""Every weight and every cache of a model as rows; a model does not know how it will be split."""

from shardlint.architectures.families import FAMILIES, lacks_vision_config, rows_of
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.known_pieces import HEADS_ONLY, known_pieces
from shardlint.architectures.rows import CacheRow, Extent, Row, Rows, Unlike

__all__ = [
    "FAMILIES",
    "HEADS_ONLY",
    "CacheRow",
    "Extent",
    "Family",
    "Row",
    "Rows",
    "Unlike",
    "known_pieces",
    "lacks_vision_config",
    "rows_of",
]
