"""The table of families: from the architecture class that an engine builds to the rows of the model.

A family is one function of the model's numbers.  Where a class differs from its relatives only in which blocks it
takes and which stage holds its ends, that is all its function says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.quantisation import quantised
from shardlint.architectures.rows import Rows
from shardlint.facts import Geometry
from shardlint.facts.class_defaults import class_of
from shardlint.findings import Unknown

__all__ = ["FAMILIES", "Family", "rows_of"]

KINDS = (
    "dense",
    "experts",
    "mla",
    "towers",
    "hybrid",
    "qwen4",
    "gemma4",
    "mixtures",
    "relatives",
    "older",
    "encoders",
    "kimi",
    "state_space",
    "pruned",
    "image_models",
    "classics",
    "embedders",
    "sound_models",
    "phi_multimodal",
    "gemma3n",
    "open_mixtures",
    "delta_hybrids",
    "hunyuan4",
    "seeing",
    "omni",
    "pages",
    "resampling",
)
"""The modules of this package that hold families, the most asked for first: each has a table of its own."""


class Table(Mapping[str, Family]):
    """All families; a module is loaded when a class is looked for that none of those before it has."""

    def __init__(self) -> None:
        self._known: dict[str, Family] = {}
        self._unread = list(KINDS)

    def __getitem__(self, architecture: str) -> Family:
        while architecture not in self._known and self._unread:
            self._read_one()
        return self._known[architecture]

    def __iter__(self) -> Iterator[str]:
        while self._unread:
            self._read_one()
        return iter(self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read_one(self) -> None:
        kind = self._unread[0]
        self._known.update(import_module(f"{__name__}.{kind}").FAMILIES)
        self._unread.remove(kind)


FAMILIES: Mapping[str, Family] = Table()
"""Architecture class -> family. What is not here is unknown, never guessed."""


def rows_of(
    geometry: Geometry | Unknown, families: Mapping[str, Family] | None = None, quantization: str | None = None
) -> Rows | Unknown:
    """All rows of a model; Unknown, with what would settle it, where its family or one of its numbers is not known.

    Of a quantised checkpoint each row says how it is stored; where that is not known, the sizes are given and
    `Rows.bytes_unknown` is set.  `families` is the table to look in, this module's where none is given;
    `quantization` is the engine's option as written.
    """
    if isinstance(geometry, Unknown):
        return geometry
    if not geometry.text:
        return Unknown(
            f"of {geometry.model_id} only the main numbers are known",
            settle_by="give the model's config.json with --models",
        )
    table = FAMILIES if families is None else families
    family = table.get(geometry.architecture) or _embedder(table, geometry.architecture)
    if family is None:
        named = geometry.architecture or "a model without architecture"
        return Unknown(f"the weights of {named} are not described", settle_by="a description of its family")
    try:
        rows = family(Model(geometry))
    except Missing as missing:
        return missing.unknown
    return quantised(rows, geometry, quantization)


EMBEDDERS = ("EmbeddingModel", "ForTextEncoding", "ForRewardModeling", "RewardModel", "Model")
"""Endings of classes that vLLM makes of the language model of that name, without its output head."""
HEADS = ("lm_head", "output", "output_layer")


def _embedder(table: Mapping[str, Family], architecture: str) -> Family | None:
    """The language model of a class that ends so, less the head (Qwen3Model from Qwen3ForCausalLM)."""
    ending = next((ending for ending in EMBEDDERS if architecture.endswith(ending)), None)
    family = table.get(architecture.removesuffix(ending) + "ForCausalLM") if ending else None
    if family is None:
        return None

    def embed(model: Model) -> Rows:
        rows = family(model)
        return rows._replace(weights=tuple(row for row in rows.weights if row.name.rpartition(".")[2] not in HEADS))

    return embed


def lacks_vision_config(geometry: Geometry) -> bool:
    """Whether the class builds a tower that neither the config nor the class by which that is read describes.

    False where nobody knows what the config's class would add.
    """
    family = FAMILIES.get(geometry.architecture)
    if not isinstance(family, WithTower) or class_of(geometry.model_type) is None:
        return False
    return not Part(geometry, "vision_config").is_known
