"""What can be said of a model whose rows are not described: its heads, its KV heads and its vocabulary."""

from __future__ import annotations

from shardlint.architectures.rows import ONE, Extent, Row
from shardlint.facts import Geometry
from shardlint.findings import Located, Piece

HEADS_ONLY = "heads, KV heads and vocabulary only"

_PIECES: tuple[tuple[str, str, Piece], ...] = (
    ("num_attention_heads", "attention", "query_head"),
    ("num_key_value_heads", "attention", "kv_head"),
    ("vocab_size", "embedding", "vocabulary"),
)


def known_pieces(geometry: Geometry) -> tuple[Row, ...]:
    """One row for each number that every family has and every engine cuts, as far as the geometry tells them.

    Latent attention keeps no KV heads apart, so they are left out there.
    """
    latent = geometry.facts.get("is_mla")
    keeps_kv_heads = not (isinstance(latent, Located) and latent.value)
    return tuple(
        Row(name, (Extent(count, piece),), ONE)
        for fact, name, piece in _PIECES
        if (count := _count(geometry, fact)) is not None and (piece != "kv_head" or keeps_kv_heads)
    )


def _count(geometry: Geometry, fact: str) -> int | None:
    value = geometry.facts.get(fact)
    if not isinstance(value, Located) or isinstance(value.value, bool) or not isinstance(value.value, int):
        return None
    return value.value if value.value > 0 else None
