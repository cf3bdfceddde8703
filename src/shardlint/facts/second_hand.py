"""A wide second table: heads, KV heads, layers, vocabulary and experts of some 11,000 models, at second hand.

Its rows were collected by llmfit (MIT), not read from config.json files by us; what that collection is known to get
wrong is left out. One line of tab-separated values a model; an empty field is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.facts.geometry import Geometry
from shardlint.facts.readers import MLA_MODEL_TYPES, READERS
from shardlint.facts.settling import settle_by
from shardlint.facts.tables import folded_table, table
from shardlint.findings import Located, Maybe, Span, Unknown

TABLE = "models_second_hand.tsv"
COLUMNS = (
    "model_type",
    "parameters",
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "hidden_size",
    "vocab_size",
    "num_experts",
    "num_experts_per_tok",
)
SOURCE = "second-hand table (llmfit 1.1.17)"


class SecondHandFacts(Mapping[str, Maybe[Any]]):
    """The few facts of a row; every other standard name is Unknown."""

    __slots__ = ("_values", "asked", "model_id")

    def __init__(self, model_id: str, values: Mapping[str, Any], asked: str) -> None:
        """`model_id` is the row's, `asked` the one that was asked for."""
        self.model_id = model_id
        self.asked = asked
        self._values = values

    def __getitem__(self, name: str) -> Maybe[Any]:
        if name not in READERS:
            raise KeyError(name)
        value = self._values.get(name)
        if value is None:
            known = f"the catalogue knows {self.asked} only at second hand"
            row = "" if self.model_id == self.asked else f", from {self.model_id}"
            reason = f"{known}{row}, without its {name.replace('_', ' ')}"
            return Unknown(reason, settle_by=settle_by(self.asked))
        return Located(value, Span(f"catalogue:{self.model_id}", 1, 1, 1, 1), name, "written", SOURCE)

    def __iter__(self) -> Iterator[str]:
        return iter(READERS)

    def __len__(self) -> int:
        return len(READERS)


def find(model_id: str) -> Geometry | None:
    """The geometry of the model of that id, letter by letter, else without regard to case."""
    if "\t" in model_id or "\n" in model_id:
        return None
    wanted = f"\n{model_id}\t".encode()
    at = table(TABLE).find(wanted)
    if at < 0:
        at = folded_table(TABLE).find(wanted.lower())
    return _row_at(at + 1, model_id, model_id) if at >= 0 else None


def namesakes(name: str, asked: str) -> Iterator[Geometry]:
    """The models that have that name under any organisation; `asked` is the id that was asked for."""
    data, wanted = folded_table(TABLE), f"/{name}\t".lower().encode()
    at = data.find(wanted)
    while at >= 0:
        yield _row_at(data.rfind(b"\n", 0, at) + 1, "", asked)
        at = data.find(wanted, at + 1)


def _row_at(start: int, model_id: str, asked: str) -> Geometry:
    data = table(TABLE)
    row_id, model_type, *numbers = data[start : data.find(b"\n", start)].decode().split("\t")
    values: dict[str, Any] = {name: int(text) for name, text in zip(COLUMNS[1:], numbers, strict=True) if text}
    facts = SecondHandFacts(row_id, values | _latent_attention(model_type), asked)
    return Geometry(
        model_id or row_id,
        architecture="",
        model_type=model_type,
        facts=facts,
        origin=f"catalogue, second-hand: {SOURCE}",
        text_model_type=model_type,
    )


def _latent_attention(model_type: str) -> dict[str, Any]:
    """A model type without latent attention settles one fact."""
    return {"is_mla": False} if model_type and model_type not in MLA_MODEL_TYPES else {}
