"""Towers beside the language model: encoders of images, all on the first pipeline stage."""

from __future__ import annotations

from shardlint.architectures.rows import ONE, Extent, Row, Tower
from shardlint.findings.records import NamedTuple


class Bricks(NamedTuple):
    """What the rows of one tower have in common: their name and when the tower is whole on every rank."""

    name: str
    mode: Tower = "by_mode"

    def whole(
        self,
        name: str,
        outputs: int,
        contraction: int = 1,
        *,
        bias: bool = False,
        times: int = 1,
        quantisable: bool = False,
    ) -> Row:
        """A weight that every rank holds whole: a norm, a convolution over patches, a table of positions."""
        row = self._row(name, (Extent(outputs),), Extent(contraction), bias, times)
        return row._replace(quantisable=quantisable)

    def column(
        self, name: str, outputs: int, contraction: int, *, bias: bool = True, times: int = 1, merged: int = 1
    ) -> Row:
        """A linear layer cut by its outputs; `merged` of them in one weight."""
        return self._row(name, (Extent(outputs, "column"),) * merged, Extent(contraction), bias, times)

    def row(self, name: str, outputs: int, contraction: int, *, bias: bool = True, times: int = 1) -> Row:
        """A linear layer cut by its inputs."""
        return self._row(name, (Extent(outputs),), Extent(contraction, "row"), bias, times)

    def attention(
        self,
        names: tuple[str, str],
        hidden_size: int,
        heads: int,
        times: int,
        *,
        bias: bool = True,
        kv_heads: int | None = None,
        width: int | None = None,
    ) -> tuple[Row, Row]:
        """Merged Q, K and V, and the output projection, of `times` blocks; as many KV heads as heads if not given."""
        width = width or hidden_size // heads
        queries = Extent(heads, "vision_head", width)
        keys = Extent(kv_heads, "kv_head", width) if kv_heads else queries
        merged, output = names
        return (
            self._row(merged, (queries, keys, keys), Extent(hidden_size), bias, times),
            self.row(output, hidden_size, heads * width, bias=bias, times=times),
        )

    def _row(
        self, name: str, outs: tuple[Extent, ...], contraction: Extent = ONE, bias: bool = False, times: int = 1
    ) -> Row:
        return Row(f"{self.name}.{name}", outs, contraction, bias, stage="first", times=times, tower=self.mode)
