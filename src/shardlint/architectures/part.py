"""A part of a config beside the language model (the vision tower's), read as its config class reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.architectures.model import LARGEST_NUMBER, Missing
from shardlint.facts import Geometry
from shardlint.facts.class_defaults import ConfigClass, class_of
from shardlint.facts.geometry import NOTHING


class Part:
    """One nested dict of a config, or the whole of it ("" for `key`): written keys first, then its class's defaults.

    The dict of a dict is named with a dot between them.
    """

    def __init__(self, geometry: Geometry, key: str) -> None:
        self.name = key or "whole"
        self.model_id = geometry.model_id
        self._written: Mapping[str, Any] = geometry.raw
        self._class = class_of(geometry.model_type) or ConfigClass("")
        is_written = True
        for word in key.split(".") if key else ():
            written = self._written.get(word)
            is_written = isinstance(written, Mapping)
            self._written = written if isinstance(written, Mapping) else NOTHING
            self._class = _class_of(self._written, self._class, word)
        self.is_known = is_written or bool(self._class.name)

    @classmethod
    def of(cls, name: str, model_id: str, numbers: Mapping[str, Any]) -> Part:
        """A part that an engine builds from numbers of its own."""
        part = cls.__new__(cls)
        part.name, part.model_id, part.is_known = name, model_id, True
        part._written, part._class = numbers, ConfigClass("")
        return part

    def odd(self, key: str, default: Any = None) -> Any:
        """The value of a key; where it is absent or null that of the class, else `default`."""
        kept_as = self._class.spellings.get(key, key)
        written = self._written.get(key, self._written.get(kept_as))
        found = self._class.defaults.get(kept_as) if written is None else written
        return default if found is None else found

    def number(self, key: str, default: int | None = None) -> int:
        """Such a value where it must be a whole number of at least 1."""
        value = self.odd(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_NUMBER:
            raise Missing(f"the config of {self.model_id} does not tell {key} of its {self.name}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Such a value where it is yes or no."""
        return bool(self.odd(key, default))


def _class_of(written: Mapping[str, Any], whole: ConfigClass, key: str) -> ConfigClass:
    """The class that the part is read by: its own where it names one that is known, else what the whole says of it."""
    names = (written.get("model_type"), whole.parts.get(key))
    found = (class_of(name) for name in names if isinstance(name, str))
    return next((one for one in found if one is not None), ConfigClass(""))
