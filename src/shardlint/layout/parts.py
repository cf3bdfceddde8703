"""The parts of a model: how many parameters each has, and what they take on one GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shardlint.architectures.rows import Extent, Row, Rows
from shardlint.engines.cutting import Cutting
from shardlint.facts import Geometry
from shardlint.findings.records import NamedTuple
from shardlint.layout.laying_out import lay_out
from shardlint.layout.sizes import Sizes

PartName = Literal[
    "embedding",
    "attention",
    "recurrent",
    "mlp",
    "router",
    "experts",
    "shared_experts",
    "norms",
    "towers",
    "lm_head",
    "other",
]
PARTS: tuple[PartName, ...] = (
    "towers",
    "embedding",
    "attention",
    "recurrent",
    "mlp",
    "router",
    "shared_experts",
    "experts",
    "norms",
    "lm_head",
    "other",
)
"""In the order in which a token meets them."""

_HEADS = ("lm_head", "output", "output_layer", "score")
_TABLES = ("wte", "wpe")
_BY_MODULE: tuple[tuple[PartName, tuple[str, ...]], ...] = (
    ("other", ("altup", "laurel", "per_layer")),
    ("shared_experts", ("shared_expert",)),
    ("router", ("router", "gate.", "e_score_correction_bias")),
    ("other", (".hc_",)),
    ("attention", (".qkv_proj", ".o_proj", "self_attn", "self_attention", "encoder_attn", "attention")),
    ("mlp", ("latent_proj", ".up_proj.", ".down_proj.", ".gate_up_proj.")),
    ("recurrent", ("linear_attn", "mamba", "mixer", "short_conv")),
    ("attention", ("attn",)),
    ("mlp", ("mlp", "ffn", "feed_forward", "intermediate", ".output.", "block_sparse_moe")),
)
"""Words in the engine's module path, the telling ones first; a dot stands where a word begins or ends."""


class Part(NamedTuple):
    """The weights of one kind. `bytes` is None where the storage of one of them is not known."""

    name: PartName
    parameters: int
    """As the engine builds them, without its padding; tied weights count once."""
    bytes: int | None


def parts_of(rows: Rows, geometry: Geometry, cutting: Cutting) -> tuple[Part, ...]:
    """The parts that a model has, its bytes those of an engine on one GPU without any parallelism."""
    found: dict[PartName, list[Row]] = {name: [] for name in PARTS}
    for row in rows.weights:
        found[part_of(row)].append(row)
    return tuple(
        Part(name, sum(map(parameters_of, weights)), _bytes(rows, weights, geometry, cutting))
        for name, weights in found.items()
        if weights
    )


def part_of(row: Row) -> PartName:
    """The part that a row belongs to, by what it is cut into and by its module."""
    last = row.name.rpartition(".")[2]
    if row.tower != "none":
        return "towers"
    if row.experts.piece == "expert":
        return "experts"
    if row.stage != "layer" and (last in _HEADS or row.name.startswith("classifier.")):
        return "lm_head"
    if "norm" in last.lower() or last.startswith("ln_"):
        return "norms"
    if row.stage != "layer" and (
        "embed" in row.name or last in _TABLES or any(out.piece == "vocabulary" for out in row.outs)
    ):
        return "embedding"
    path = f".{row.name}."
    return next((part for part, words in _BY_MODULE if any(word in path for word in words)), "other")


def parameters_of(row: Row) -> int:
    """Elements of a row in all its layers and experts, biases included."""
    outs = sum(map(_elements, row.outs))
    of_one = outs * _elements(row.contraction) + (outs if row.bias else 0)
    copies = len(row.layers) if row.stage == "layer" else 1
    return of_one * _elements(row.experts) * row.times * copies


def _elements(extent: Extent) -> int:
    return extent.count * extent.unit


def _bytes(rows: Rows, weights: Sequence[Row], geometry: Geometry, cutting: Cutting) -> int | None:
    only = rows._replace(weights=tuple(weights), caches=(), states=())
    return lay_out(Sizes(), geometry, cutting, rows=only).ranks[0].weight_bytes
