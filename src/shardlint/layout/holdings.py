"""What a rank holds: the rows of its stage, each cut, in bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from shardlint.architectures.rows import CacheRow, Row, Rows
from shardlint.layout.dtypes import ELEMENT_BYTES
from shardlint.layout.layout import CacheShare
from shardlint.layout.share import Division, rows_in_use
from shardlint.layout.stages import Layers


class Holdings:
    """The rows of a model over the stages of a layout. Sizes of elements are None where unknown.

    `model_bits` is the size of an element of the model's own type, `quantised_bits` of a row that a quantised
    checkpoint may have packed: the same in a plain checkpoint.
    """

    def __init__(
        self,
        rows: Rows,
        division: Division,
        stages: tuple[Layers, ...],
        model_bits: int | None,
        quantised_bits: int | None,
        cache_element_bytes: int | None,
        ranks_per_token: int = 1,
    ) -> None:
        self.rows = rows
        self.division = division
        self.stages = stages
        self.model_bits = model_bits
        self.quantised_bits = quantised_bits
        self.cache_element_bytes = cache_element_bytes
        self.ranks_per_token = ranks_per_token
        self._weights = tuple(row for row in rows_in_use(division, rows.weights) if not division.is_on_host(row))
        self._expert_counts = tuple(dict.fromkeys(r.experts for r in self._weights if r.experts.piece == "expert"))
        self._stage_bytes: dict[int, int | None] = {}
        self._expert_bytes: dict[tuple[int, tuple[int | None, ...]], int | None] = {}

    def weight_bytes(self, stage: int, expert_index: int) -> int | None:
        """Bytes of the parameters of a rank of this stage that is number `expert_index` of those sharing experts."""
        if stage not in self._stage_bytes:  # the same for every rank of the stage but for the experts
            self._stage_bytes[stage] = self._sum(stage, 0, with_experts=False)
        rest = self._stage_bytes[stage]
        key = (stage, tuple(self.division.share(extent, expert_index) for extent in self._expert_counts))
        if key not in self._expert_bytes:
            self._expert_bytes[key] = self._sum(stage, expert_index, with_experts=True)
        experts = self._expert_bytes[key]
        return None if rest is None or experts is None else rest + experts

    def caches(self, stage: int) -> tuple[CacheShare, ...] | None:
        """The caches of the layers of this stage."""
        shares = []
        for row in self.rows.caches:
            if row.with_towers and not self.division.towers:
                continue
            elements, element_bytes = self.division.cache_elements(row), self._cache_element_bytes(row)
            layers = layers_between(row.layers, self.stages[stage])
            if elements is None or element_bytes is None:
                return None
            if layers:
                per_token = _a_token(elements * element_bytes, row.tokens)
                shares.append(CacheShare(layers, per_token, row.window, self.ranks_per_token))
        return tuple(shares)

    def _cache_element_bytes(self, row: CacheRow) -> int | None:
        match row.element:
            case "cache":
                return self.cache_element_bytes
            case "model":
                return None if self.model_bits is None else self.model_bits // 8
            case "byte":
                return 1

    def _sum(self, stage: int, expert_index: int, *, with_experts: bool) -> int | None:
        total = 0
        for row in self._weights:
            if (row.experts.piece == "expert") == with_experts and (times := self._times(row, stage)):
                element_bits = self._element_bits(row)
                bits = None if element_bits is None else self.division.bits(row, element_bits, expert_index)
                if bits is None:
                    return None
                total += times * bits
        return total // 8

    def _element_bits(self, row: Row) -> int | None:
        """Of one element of a row that its scheme does not pack."""
        if row.element_type != "model":
            return 8 * ELEMENT_BYTES[row.element_type]
        return self.quantised_bits if row.quantisable and row.scheme is None else self.model_bits

    def _times(self, row: Row, stage: int) -> int:
        """How often a stage holds a row."""
        first, last = stage == 0, stage == len(self.stages) - 1
        match row.stage:
            case "layer":
                return layers_between(row.layers, self.stages[stage])
            case "first":
                return int(first)
            case "last":
                return int(last)
            case "ends":
                return int(first or last)
            case "each":
                return 1


def _a_token(page_bytes: int, tokens: int) -> float:
    """A token's part of a page: a whole number wherever it is one."""
    return page_bytes / tokens if page_bytes % tokens else page_bytes // tokens


def layers_between(layers: Sequence[int], stage: Layers) -> int:
    """How many of these layers, in ascending order, a stage holds."""
    return max(0, bisect_left(layers, stage.stop) - bisect_left(layers, stage.start))
