"""A model's geometry: the numbers of config.json under one name each, with the place that each came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from shardlint.facts.readers import READERS
from shardlint.facts.reading import Reading
from shardlint.findings import Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.text.source import Source

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Facts(Mapping[str, Maybe[Any]]):
    """The facts of one config, each worked out when it is first asked for."""

    __slots__ = ("_known", "_reading")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, Maybe[Any]] = {}

    def __getitem__(self, name: str) -> Maybe[Any]:
        if name not in self._known:
            self._known[name] = READERS[name](self._reading)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(READERS)

    def __len__(self) -> int:
        return len(READERS)


class Geometry(NamedTuple):
    """What a config.json (or a catalogue row) says of a model, under the field's standard names.

    `facts` holds the normalised values that rules and blocks ask for by name (`num_attention_heads`,
    `num_key_value_heads`, `num_hidden_layers`, `hidden_size`, `head_dim`, `intermediate_size`,
    `moe_intermediate_size`, `vocab_size`, `num_experts`, `kv_lora_rank`, `max_position_embeddings`, ...: the keys
    of `readers.READERS`), each a `Located` value or `Unknown`; `text` is the text model's part of the raw config
    and `raw` the whole, for the blocks that read a family's odd fields.
    """

    model_id: str
    architecture: str
    model_type: str
    """Of the whole config, as written; `text_model_type` is the language model's."""
    facts: Mapping[str, Maybe[Any]]
    text: Mapping[str, Any] = NOTHING
    raw: Mapping[str, Any] = NOTHING
    side_files: Mapping[str, Mapping[str, Any]] = NOTHING
    origin: str = ""
    """In words: "models.json", "catalogue", "catalogue, second-hand"."""
    assumption: str = ""
    """Set where the geometry is another organisation's copy of the same name: what was assumed."""
    text_model_type: str = ""

    @property
    def has_files(self) -> bool:
        """Whether the model's own files were read, so that a file beside config.json that is not here is not there."""
        return not self.origin.startswith("catalogue") and not self.assumption

    def value(self, name: str) -> Any:
        """The value of a fact, or None where it is unknown."""
        fact = self.facts[name]
        return None if isinstance(fact, Unknown) else fact.value


def read(
    config: Mapping[str, Any],
    model_id: str = "",
    side_files: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    source: Source | None = None,
    origin: str = "",
    assumption: str = "",
    catalogue_id: str = "",
) -> Geometry:
    """The geometry of a clean config (`config_json.clean` makes one of foreign text; catalogue rows are clean).

    `source` is the text of config.json, so that facts can say where they stand; a catalogue row gives its id.
    """
    reading = Reading(config, side_files or {}, source, catalogue_id)
    return Geometry(
        model_id,
        _architecture(config),
        str(config.get("model_type") or ""),
        Facts(reading),
        reading.text,
        config,
        reading.side_files,
        origin,
        assumption,
        reading.model_type,
    )


def _architecture(config: Mapping[str, Any]) -> str:
    """The first of `architectures`, or the class that vLLM serves in its place; empty where none is named."""
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        return ""
    first = str(architectures[0])
    key, with_tower = TOWER_CLASSES.get(str(config.get("model_type")), ("", ""))
    return with_tower if config.get(key) and first.endswith("ForCausalLM") else first


TOWER_CLASSES: Mapping[str, tuple[str, str]] = {
    "deepseek_v4": ("vision_n_layers", "DeepseekV4ForConditionalGeneration"),
    "mimo_v2": ("vision_config", "MiMoV2OmniForCausalLM"),
    "mimo_v2_flash": ("vision_config", "MiMoV2OmniForCausalLM"),
}
"""Model type -> the key of a tower, and the class that vLLM takes in place of the text-only one where it is there."""
