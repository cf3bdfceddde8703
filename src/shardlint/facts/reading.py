"""One config.json as its config class would hold it: the text model's keys under their standard names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.facts.class_defaults import ConfigClass, class_of
from shardlint.facts.json_places import place_of
from shardlint.findings import Located, Span
from shardlint.text.source import Source

TEXT_PARTS = ("thinker_config", "text_config", "llm_config", "language_config", "decoder")
"""Keys under which models with towers keep the geometry of their language model."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "decoder_layers"),
    "hidden_size": ("n_embd", "d_model"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length"),
}
"""Names that families use for the same thing, where no config class says which."""

SAME_EVERYWHERE: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embed",),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "decoder_ffn_dim"),
    "vocab_size": ("padded_vocab_size",),
    "torch_dtype": ("dtype",),
}
"""Names that mean the same in every family."""


class Reading:
    """Looks up standard names in a raw config: written, else the class's default.

    `path` is where the text model's dict stands in the file, `text` the dict itself.
    """

    __slots__ = ("_config_class", "_place", "catalogue_id", "model_type", "path", "raw", "side_files", "source", "text")

    def __init__(
        self,
        raw: Mapping[str, Any],
        side_files: Mapping[str, Mapping[str, Any]],
        source: Source | None = None,
        catalogue_id: str = "",
    ) -> None:
        self.raw = raw
        self.side_files = side_files
        self.source = source
        self.catalogue_id = catalogue_id
        self.path, self.text, self.model_type = _text_part(raw)
        self._config_class = class_of(self.model_type) or ConfigClass("")

    @property
    def class_known(self) -> bool:
        """Whether an absent key has a meaning that we know."""
        return bool(self._config_class.name)

    def has(self, name: str) -> bool:
        """Whether the engine's config object would have that attribute."""
        return self._written_key(name) is not None or name in self._defaults

    def value(self, name: str) -> Any:
        """The value of a standard name; None where it is absent, null, or has no default."""
        key = self._written_key(name)
        return self.text[key] if key is not None else self._defaults.get(name)

    def written(self, name: str) -> Located[Any] | None:
        """The value of a standard name where the file itself gives it."""
        key = self._written_key(name)
        return None if key is None or self.text[key] is None else self.at(self.text[key], key)

    def first(self, names: Sequence[str]) -> str | None:
        """The first of the names that the engine's config object would have."""
        return next((name for name in names if self.has(name)), None)

    def located(self, name: str) -> Located[Any] | None:
        """The value of a standard name with its place, or None where there is none."""
        value = self.value(name)
        if value is None:
            return None
        key = self._written_key(name)
        if key is None:
            return Located(value, self.place(()), name, "default", f"class default of {self.model_type}")
        return self.at(value, key)

    def at(self, value: Any, *keys: str) -> Located[Any]:
        """A value that stands under these keys of the text model's dict."""
        path = (*self.path, *keys)
        return Located(value, self.place(path), path[-1], "written", self._says(path))

    def top(self, value: Any, *keys: str) -> Located[Any]:
        """A value that stands under these keys of the whole config, outside the text model's dict."""
        return Located(value, self.place(keys), keys[-1], "written", self._says(keys))

    def derived(self, value: Any, how: str) -> Located[Any]:
        """A value computed from others, with the sum in words."""
        return Located(value, self.place(()), "", "derived", how)

    def place(self, path: Sequence[str]) -> Span | None:
        """Where the value under `path` stands; a catalogue row counts as one place."""
        if self.source is not None:
            return place_of(self.source, path) if path else None
        if self.catalogue_id:
            return Span(f"catalogue:{self.catalogue_id}", 1, 1, 1, 1)
        return None

    @property
    def _defaults(self) -> Mapping[str, Any]:
        return self._config_class.defaults

    def _written_key(self, name: str) -> str | None:
        """The key under which the file gives the name; a null counts as written where no other spelling does."""
        kept_as = self._config_class.spellings.get(name)
        others = (kept_as,) if kept_as else SAME_EVERYWHERE.get(name, ())
        if not kept_as and not self.class_known:
            others = (*others, *SPELLINGS.get(name, ()))
        written = [key for key in (name, *others) if key in self.text]
        return next((key for key in written if self.text[key] is not None), written[0] if written else None)

    def _says(self, path: Sequence[str]) -> str:
        holder = self.source.path if self.source else self.catalogue_id or "config.json"
        return f"{'.'.join(path)} of {holder}"


def _text_part(raw: Mapping[str, Any], deepest: int = 4) -> tuple[tuple[str, ...], Mapping[str, Any], str]:
    """Path, dict and model type of the language model inside a config."""
    outer = raw.get("model_type") or ""
    for key in TEXT_PARTS if deepest else ():
        part = raw.get(key)
        if isinstance(part, Mapping) and part:
            path, text, model_type = _text_part(part, deepest - 1)
            return (key, *path), text, model_type or _type_of_part(outer, key)
    inner = _type_of_part(outer, "text_config")
    return (), raw, inner or outer


def _type_of_part(outer: str, key: str) -> str:
    """The model type that a config class gives to its part where the file does not say."""
    config_class = class_of(outer)
    return config_class.parts.get(key, "") if config_class else ""
