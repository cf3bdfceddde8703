"""`shardlint model`: what is known of one model, and how it can be split."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardlint import engines
from shardlint.architectures import Rows, rows_of
from shardlint.facts import Geometry, geometry_of
from shardlint.findings import Unknown
from shardlint.front.failures import CannotRun
from shardlint.front.models import CONFIG
from shardlint.layout import Degree, Layout, Legal, Sizes, lay_out, legal_values
from shardlint.layout.laying_out import number_of_layers
from shardlint.layout.parts import parts_of
from shardlint.report.model import CacheLine, DegreeLine, ModelReport, PartLine

if TYPE_CHECKING:
    from shardlint.check import Settings
    from shardlint.front.library import DiskLibrary

VALUES = (*range(1, 17), 32, 64)
"""The degrees that are tried."""


class _Known:
    """The model, its rows and the engine that would serve it."""

    def __init__(self, geometry: Geometry, settings: Settings) -> None:
        self.engine = engines.engine("vllm")
        self.release = settings.vllm or self.engine.newest
        self.geometry = geometry
        self.rows: Rows | Unknown = rows_of(geometry, settings.registry.families)
        self.cutting = self.engine.cutting(self.release)
        self.legal: Legal = legal_values(Sizes(), geometry, self.cutting, rows=self.rows)

    def lay_out(self, degree: Degree, value: int) -> Layout:
        """The layout of this one degree."""
        return lay_out(Sizes().with_degree(degree, value), self.geometry, self.cutting, rows=self.rows)


def describe(word: str, library: DiskLibrary, settings: Settings) -> ModelReport:
    """What is known of a model by its id or its folder. Raises CannotRun where nothing is."""
    geometry = geometry_of(_model_id(word), library, settings.registry.models)
    if isinstance(geometry, Unknown):
        settle = f"; to settle it: {geometry.settle_by}" if geometry.settle_by else ""
        raise CannotRun(geometry.reason + settle)
    known = _Known(geometry, settings)
    alone = known.lay_out("tensor_parallel_size", 1)
    rank = alone.ranks[0]
    return ModelReport(
        model=word,
        engine=f"{known.engine.label} {known.release}",
        architecture=geometry.architecture,
        model_type=geometry.model_type,
        origin=geometry.origin,
        assumption=geometry.assumption,
        facts=dict(geometry.facts),
        layers=number_of_layers(geometry, known.rows),
        parts=tuple(_parts(known)),
        weight_bytes=rank.weight_bytes,
        caches=None if rank.caches is None else tuple(CacheLine(*cache[:3]) for cache in rank.caches),
        kv_bytes_per_token=rank.kv_bytes_per_token_if_all_full,
        state_bytes_per_sequence=None if rank.caches is None else rank.state_bytes,
        basis=known.legal.basis,
        tensor=tuple(_tensor(known, value) for value in VALUES),
        pipeline=tuple(_pipeline(known, value) for value in VALUES),
        unknown=alone.unknown,
    )


def _model_id(word: str) -> str:
    """A folder is asked for by its absolute path, which stands for nothing but itself."""
    if os.path.isfile(os.path.join(word, CONFIG)):
        return os.path.abspath(word)
    return word


def _parts(known: _Known) -> Iterator[PartLine]:
    if not isinstance(known.rows, Unknown):
        yield from (PartLine(*part) for part in parts_of(known.rows, known.geometry, known.cutting))


def _tensor(known: _Known, value: int) -> DegreeLine:
    line = _line(value, known.lay_out("tensor_parallel_size", value))
    if line.legal and value > 1 and isinstance(known.rows, Unknown):
        return DegreeLine(value, None, (f"not refused by {known.legal.basis}",))
    return line


def _pipeline(known: _Known, value: int) -> DegreeLine:
    layout = known.lay_out("pipeline_parallel_size", value)
    if value > 1:
        supported = known.engine.supports_pp(known.geometry.architecture, known.release)
        if isinstance(supported, Unknown):
            return DegreeLine(value, None, (supported.reason,))
        if not supported:
            return DegreeLine(value, False, (f"{known.geometry.architecture} has no pipeline parallelism",))
    if not layout.stages:
        return DegreeLine(value, None, ("the number of layers is not known",))
    return _line(value, layout)


def _line(value: int, layout: Layout) -> DegreeLine:
    refused = tuple(map(str, layout.uneven)) or ((layout.refused,) if layout.refused else ())
    if refused:
        return DegreeLine(value, False, refused)
    weights = [rank.weight_bytes for rank in layout.ranks if rank.weight_bytes is not None]
    kept = [
        rank.kv_bytes_per_token_if_all_full for rank in layout.ranks if rank.kv_bytes_per_token_if_all_full is not None
    ]
    costs = tuple(f"loads though {makeshift}" for makeshift in layout.makeshifts)
    return DegreeLine(value, True, costs, max(weights, default=None), max(kept, default=None))
