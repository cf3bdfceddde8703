"""The rows of a model as its quantised checkpoint stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from shardlint.architectures.model import Missing
from shardlint.architectures.quantisation.checkpoint import quantization_config
from shardlint.architectures.quantisation.compressed import compressed_tensors
from shardlint.architectures.quantisation.exports import auto_round, quark
from shardlint.architectures.quantisation.methods import (
    Renames,
    awq,
    by_other_kernel,
    deepseek_v4,
    fp8,
    gptq,
    modelopt,
    mxfp4,
)
from shardlint.architectures.quantisation.modules import Method, Module
from shardlint.architectures.rows import ElementType, Extent, Row, Rows
from shardlint.architectures.schemes import Scheme
from shardlint.architectures.tables import stored_table
from shardlint.facts import Geometry
from shardlint.findings import Unknown

METHODS: Mapping[str, Callable[[Mapping[str, Any], Renames], Method]] = {
    "auto_awq": awq,
    "auto_gptq": gptq,
    "auto-round": auto_round,
    "awq": awq,
    "awq_marlin": awq,
    "compressed-tensors": compressed_tensors,
    "deepseek_v4_fp8": deepseek_v4,
    "fp8": fp8,
    "gptq": gptq,
    "gptq_marlin": gptq,
    "inc": auto_round,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "modelopt_mixed": modelopt,
    "modelopt_mxfp8": modelopt,
    "mxfp4": mxfp4,
    "quark": quark,
}
"""The method that a checkpoint names -> what it makes of the modules."""

FUSED: Mapping[str, tuple[str, ...]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""What checkpoints have in place of a merged layer, unless its row says otherwise."""


OF_AN_EXPERT = ("gate_proj", "up_proj", "down_proj")
"""What checkpoints call the projections of an expert, unless its row says otherwise."""


def stored_by(stated: str, rows: Rows, geometry: Geometry, quantization: str | None) -> Rows:
    """The rows as a checkpoint stores them that names this method."""
    stated = dict(rows.reads_quantisation_as).get(stated, stated)
    if stated not in METHODS:
        reason = f"the checkpoint is quantised ({stated}), and the bytes of its rows are not described"
        return rows._replace(bytes_unknown=Unknown(reason))
    try:
        method = METHODS[stated](quantization_config(geometry), rows.renames)
        if quantization == "moe_wna16":
            method = method._replace(scheme_of=partial(by_other_kernel, method))
        stored = tuple(part for row in rows.weights for part in _stored(_as_built(row, stated), method))
    except Missing as missing:
        return rows._replace(bytes_unknown=missing.unknown)
    return rows._replace(weights=stored)


def _as_built(row: Row, stated: str) -> Row:
    """A row whose class takes another layer for it under some methods."""
    if not any(method in stated for method in row.whole_if_packed_by):
        return row
    return row._replace(outs=tuple(out._replace(piece="whole") for out in row.outs))


def _stored(row: Row, method: Method) -> Iterator[Row]:
    """A row, in parts where its layers are not stored alike, and what the method keeps beside an attention."""
    if not row.quantisable or row.element_type != "model":
        yield row
    elif row.side_table:
        yield from stored_table(row, method.table_scheme_of(_module(row, row.layers[0])))
    elif row.stage != "layer":
        yield row._replace(scheme=method.scheme_of(_module(row, 0)))
    else:
        for scheme, layers in _by_scheme(row, method):
            yield row._replace(scheme=scheme, layers=layers)
    if row.attention:
        yield from _scalars(row, method.scalars.get(row.attention, {}))


def _by_scheme(row: Row, method: Method) -> list[tuple[Scheme | None, Sequence[int]]]:
    found: dict[Scheme | None, list[int]] = {}
    for layer in row.layers:
        found.setdefault(method.scheme_of(_module(row, layer)), []).append(layer)
    if len(found) == 1:
        return [(next(iter(found)), row.layers)]
    return list(found.items())


def _module(row: Row, layer: int) -> Module:
    name = row.name.replace("#", str(layer))
    if row.experts.piece == "expert":
        experts = name.rpartition(".")[0]
        return Module(experts, "experts", tuple(f"{experts}.0.{part}" for part in row.fuses or OF_AN_EXPERT))
    if row.outs[0].piece == "vocabulary":
        return Module(name, "head")
    parent, _, last = name.rpartition(".")
    fuses = row.fuses or FUSED.get(last, ())
    return Module(name, "linear", tuple(f"{parent}.{part}" for part in fuses))


def _scalars(row: Row, numbers: Mapping[ElementType, int]) -> Iterator[Row]:
    attention = row.name.rpartition(".")[0]
    for element_type, number in numbers.items():
        yield Row(
            f"{attention}.attn.scales",
            (Extent(number),),
            layers=row.layers,
            stage=row.stage,
            element_type=element_type,
            quantisable=False,
        )
