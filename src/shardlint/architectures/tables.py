"""Tables of embeddings beside that of the words, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.architectures.rows import Extent, Row
from shardlint.architectures.schemes import Scheme


def stored_table(row: Row, scheme: Scheme | None) -> Iterator[Row]:
    """A side table in that storage. The scale of the whole table is a row of its own: it stays on the GPU."""
    companions = () if scheme is None else scheme.companions
    of_blocks = tuple(companion for companion in companions if companion.spread == "blocks")
    yield row._replace(scheme=None if scheme is None else scheme._replace(companions=of_blocks))
    if scales := len(companions) - len(of_blocks):
        name = f"{row.name}.weight_scale"
        yield Row(name, (Extent(scales),), layers=row.layers, element_type="float32", quantisable=False)
