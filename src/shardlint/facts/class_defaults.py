"""What an absent key of config.json means: the defaults and the names of the model type's config class.

`data/class_defaults.jsonl` is made from the config classes themselves (`scripts/build_class_defaults.py`); only
the line that is asked for is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from shardlint.facts.tables import row_by_key
from shardlint.findings.records import NamedTuple

NOTHING: Mapping[str, Any] = MappingProxyType({})


class ConfigClass(NamedTuple):
    """One config class: values of absent keys, other spellings of its keys, and the classes of its parts."""

    name: str
    defaults: Mapping[str, Any] = NOTHING
    spellings: Mapping[str, str] = NOTHING
    """Standard name -> the name under which the class keeps it (`num_attention_heads` -> `n_head`)."""
    parts: Mapping[str, str] = NOTHING
    """Key of a nested dict -> the model type of its class (`text_config` -> `gemma3_text`)."""


@cache
def class_of(model_type: str) -> ConfigClass | None:
    """The config class that a model type is read by, or None where the table does not know it."""
    row = row_by_key("class_defaults.jsonl", model_type)
    if row is None:
        return None
    return ConfigClass(
        row["class"], row.get("defaults", NOTHING), row.get("spellings", NOTHING), row.get("parts", NOTHING)
    )
