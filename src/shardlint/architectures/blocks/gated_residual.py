"""Several residual streams beside each other, mixed by gates before each block and joined after the last (Qwen4)."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.rows import ONE, Extent, Row, Stage
from shardlint.findings.records import NamedTuple

ROWS_OF_A_GEMM = 16
"""vLLM fills the outputs of the merged first projection up to a multiple of this."""


class Streams(NamedTuple):
    """`streams` residual streams as wide as the model, mixed by gates of a low rank; whole on every rank."""

    streams: int
    rank: int
    hidden_size: int

    @property
    def filling(self) -> int:
        """Outputs of the first projection that nobody asks for."""
        return -(self.rank + self.streams) % ROWS_OF_A_GEMM

    def before_a_block(self, name: str, layers: Sequence[int]) -> tuple[Row, ...]:
        """What mixes the streams into the input of a block and says what each takes of its output."""
        outs = tuple(Extent(width) for width in (self.rank, self.streams, self.filling) if width)
        return self._rows(name, "input_mix_weight_down_block_inject", outs, "layer", layers)

    def after_the_last(self, name: str) -> tuple[Row, ...]:
        """What joins the streams for the output head."""
        return self._rows(name, "input_mix_weight_down", (Extent(self.rank),), "last", ())

    def _rows(
        self, name: str, down: str, outs: tuple[Extent, ...], stage: Stage, layers: Sequence[int]
    ) -> tuple[Row, ...]:
        joined = Extent(self.streams * self.hidden_size)
        sizes = (
            ("hc_norm", (joined,), ONE),
            (down, outs, joined),
            ("input_mix_weight_up", (joined,), Extent(self.rank)),
        )
        return tuple(
            Row(f"{name}.{key}", outputs, inputs, layers=layers, stage=stage, quantisable=False)
            for key, outputs, inputs in sizes
        )
