"""What a deployment was told and what is known about it, by name, as the conditions of an engine read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardlint.findings import Located, Maybe, Unknown

LookUp = Callable[[str], Maybe[Any] | None]


class NotTold(Exception):
    """A condition asked for a value that the files do not tell."""

    def __init__(self, name: str, unknown: Unknown) -> None:
        super().__init__(f"{name}: {unknown.reason}")
        self.name = name
        self.unknown = unknown


class Told:
    """Values by name: `told.tensor_parallel_size`, `told.num_experts`, `told.enable_dbo`, in plain Python.

    A name is that of a knob or a fact, else that of a flag with underscores for its dashes.  What nobody wrote and
    what has no default is None; what the files cannot tell raises `NotTold`, so that a condition asks in the order in
    which the answers matter (`told.enable_eplb and not told.enable_expert_parallel`).
    """

    def __init__(self, look_up: LookUp, environment: Mapping[str, Maybe[str]], stand_ins: Mapping[str, str]) -> None:
        self._look_up = look_up
        self._environment = environment
        self._stand_ins = stand_ins

    def also(self, **values: Maybe[Any]) -> Told:
        """The same, and what a rule has worked out of it, by the names that its conditions have for that."""

        def look_up(name: str) -> Maybe[Any] | None:
            return values[name] if name in values else self._look_up(name)

        return Told(look_up, self._environment, self._stand_ins)

    def __getattr__(self, name: str) -> Any:
        found = self.located(name)
        return None if found is None else found.value

    def located(self, name: str) -> Located[Any] | None:
        """The value with its place. Raises NotTold where the files do not tell it."""
        found = self._look_up(name)
        if isinstance(found, Unknown):
            raise NotTold(name, found)
        return found

    def flag(self, name: str) -> Any:
        """The value of a flag as written on the command line, whatever a variable says that stands in for it."""
        found = self.located(name)
        if found is None or found.spelled.startswith(tuple(f"{variable}=" for variable in self._stand_ins)):
            return None
        return found.value

    def part(self, name: str, key: str) -> Any:
        """One key of a flag whose value is a JSON object; None where it does not have it."""
        whole = getattr(self, name)
        return whole.get(key) if isinstance(whole, Mapping) else None

    def variable(self, name: str) -> str:
        """A variable of the environment, empty where it is not set."""
        found = self._environment.get(name)
        if isinstance(found, Unknown):
            raise NotTold(name, found)
        return "" if found is None else found.value.strip()
