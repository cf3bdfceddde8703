"""How blocks ask a geometry for its numbers: a missing one ends the description instead of becoming a guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.facts import Geometry
from shardlint.facts.class_defaults import class_of
from shardlint.findings import Located, Unknown

MOST_LAYERS = 10_000
LARGEST_NUMBER = 10**9
"""A config.json may hold any; products of larger ones are no sizes of a model and beyond any float."""
"""More layers than any model has: a config that says so is not believed."""


class Missing(Exception):
    """A number that a block needs and the model's files do not tell; caught by `rows_of`, never leaves the room."""

    def __init__(self, reason: str, settle_by: str = "give the model's complete config.json with --models") -> None:
        super().__init__(reason)
        self.unknown = Unknown(reason, settle_by=settle_by)


class Model:
    """A geometry as the blocks read it."""

    def __init__(self, geometry: Geometry) -> None:
        config_class = class_of(geometry.text_model_type)
        self.geometry = geometry
        self._class_defaults = config_class.defaults if config_class else {}
        self.hidden_size = self.number("hidden_size")
        self.layers = range(self._layers())
        self.vocabulary = self.number("vocab_size")
        self.sliding_window = self.number_or_none("sliding_window")
        self.tied_embeddings = self._fact("tie_word_embeddings") is True

    @property
    def heads(self) -> int:
        """Query heads of a layer that attends; asked for only where some do."""
        return self.number("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """KV heads of such a layer."""
        return self.number("num_key_value_heads")

    @property
    def head_dim(self) -> int:
        """The width of one of its heads."""
        return self.number("head_dim")

    def _layers(self) -> int:
        layers = self.number("num_hidden_layers")
        if layers > MOST_LAYERS:
            raise Missing(f"num_hidden_layers is {layers}, more than any model has")
        return layers

    def number(self, name: str) -> int:
        """A fact that must be a whole number above 0."""
        value = self.number_or_none(name)
        if value is None:
            raise Missing(f"the config of {self.geometry.model_id} does not tell {name}")
        return value

    def number_or_none(self, name: str) -> int | None:
        """The same where the family may do without: None where it is absent, null or 0."""
        value = self._fact(name)
        if value is None or value is False or value == 0:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Missing(f"{name} is {value!r}, not a whole number above 0")
        return value

    def _fact(self, name: str) -> Any:
        fact = self.geometry.facts.get(name)
        if isinstance(fact, Unknown):
            raise Missing(f"{name}: {fact.reason}", fact.settle_by)
        return fact.value if isinstance(fact, Located) else None

    def odd(self, key: str, default: Any = None) -> Any:
        """A family's own key of the text config that has no common name: written, else its config class's default.

        A null counts as absent, and what an absent key means to the engine is `default`.
        """
        text = self.geometry.text
        value = text[key] if key in text else self._class_defaults.get(key)
        return default if value is None else value

    def odd_number(self, key: str, default: int | None = None) -> int:
        """Such a key where it must be a whole number."""
        value = self.odd(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
            raise Missing(f"the config of {self.geometry.model_id} does not tell {key}")
        return value

    def part(self, key: str) -> Mapping[str, Any]:
        """A part of the text config that is a dict of its own; empty where absent."""
        value = self.odd(key)
        return value if isinstance(value, Mapping) else {}

    def part_number(self, part: str, key: str) -> int:
        """A whole number above 0 that stands in a part of the text config of its own."""
        value = self.part(part).get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_NUMBER:
            raise Missing(f"the config of {self.geometry.model_id} does not tell {part}.{key}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Such a key where it is yes or no."""
        return bool(self.odd(key, default))

    def numbers(self, key: str) -> Sequence[int]:
        """Such a key where it is a list of whole numbers; empty where absent."""
        value = self.odd(key, ())
        if not isinstance(value, (list, tuple)):
            return ()
        return [item for item in value if isinstance(item, int) and abs(item) <= LARGEST_NUMBER]
