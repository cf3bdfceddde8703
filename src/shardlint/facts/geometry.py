"""A model's geometry: the numbers of config.json under one name each, with the place that each came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shardlint.findings import Located, Maybe


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a config.json (or a catalogue row) says of a model, under the field's standard names.

    `facts` holds the normalised values that rules and blocks ask for by name (`num_attention_heads`,
    `num_key_value_heads`, `num_hidden_layers`, `hidden_size`, `head_dim`, `intermediate_size`,
    `moe_intermediate_size`, `vocab_size`, `num_experts`, `kv_lora_rank`, `max_position_embeddings`, ...), each a
    `Located` value or `Unknown`; `text` is the text model's part of the raw config and `raw` the whole, for the
    blocks that read a family's odd fields.
    """

    model_id: str
    architecture: str
    model_type: str
    facts: Mapping[str, Maybe[Any]]
    text: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    side_files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    origin: str = ""
    """In words: "models.json", "catalogue", "catalogue, second-hand"."""
    assumption: str = ""
    """Set where the geometry is another organisation's copy of the same name: what was assumed."""
