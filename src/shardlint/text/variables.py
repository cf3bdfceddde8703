"""The variables of a shell script while it is read."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.findings import Unknown
from shardlint.text.source import MASK
from shardlint.text.words import MAX_PIECES, Array, Piece, Value, hole_of, text_of


class Variables:
    """What is set, what of it is exported, and what a function or script was called with (None: unknown)."""

    __slots__ = ("arguments", "export_all", "exported", "values")

    def __init__(
        self,
        values: dict[str, Value | Array] | None = None,
        exported: set[str] | None = None,
        arguments: Array | None = None,
        export_all: bool = False,
    ) -> None:
        self.values = {} if values is None else values
        self.exported = set() if exported is None else exported
        self.arguments = arguments
        self.export_all = export_all

    def copy(self) -> Variables:
        return Variables(dict(self.values), set(self.exported), self.arguments, self.export_all)

    def lookup(self, name: str) -> Value | Array | None:
        """A variable or positional parameter; None where nothing in the file sets it."""
        if name in ("@", "*"):
            return self.arguments
        if name.isdigit():
            if self.arguments is None or name == "0":
                return None
            position = int(name) - 1
            return self.arguments[position] if position < len(self.arguments) else None
        return self.values.get(name)

    def assign(self, name: str, value: Value | Array) -> None:
        self.values[name] = value
        if self.export_all:
            self.exported.add(name)

    def append(self, name: str, value: Value | Array) -> None:
        """`X+=...`: arrays grow by elements, text by characters."""
        before = self.values.get(name)
        if before is None:
            self.assign(name, value)
        elif len(before) + len(value) > MAX_PIECES:
            self.forget(name, "it is too long", (*_flat(before), *_flat(value))[0])
        elif isinstance(before, list):
            self.assign(name, [*before, *(value if isinstance(value, list) else [value])])
        elif isinstance(value, list):
            self.assign(name, [before, *value])
        else:
            self.assign(name, before + value)

    def forget(self, name: str, why: str, at: Piece) -> None:
        """From here on the variable may hold anything."""
        span, spelled = at.place()
        hole = Unknown(why, span, spelled)
        self.values[name] = (Piece(MASK, at.source, at.start, at.end, hole=hole),)

    def become(self, branches: Iterable[Variables], at: Piece) -> None:
        """What holds after one of several branches ran: where they disagree, nothing is known."""
        first, *others = branches
        names = set(first.values).union(*(other.values for other in others))
        merged = Variables(exported=set.union(first.exported, *(other.exported for other in others)))
        for name in names:
            values = [branch.values.get(name) for branch in (first, *others)]
            value = values[0]
            if value is not None and all(_same(value, other) for other in values[1:]):
                merged.values[name] = value
            elif hole_of(_flat(value)) is None or value is None:
                merged.forget(name, f"${name} is set only under a condition", at)
            else:
                merged.values[name] = value
        self.values, self.exported = merged.values, merged.exported
        agree = all(other.arguments is first.arguments for other in others)
        self.arguments = first.arguments if agree else None


def _flat(value: Value | Array | None) -> Value:
    if isinstance(value, list):
        return tuple(piece for element in value for piece in element)
    return value or ()


def _same(left: Value | Array, right: Value | Array | None) -> bool:
    if left is right:
        return True
    if right is None or isinstance(left, list) != isinstance(right, list):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(one, other) for one, other in zip(left, right, strict=True))
    left, right = _flat(left), _flat(right)
    return text_of(left) == text_of(right) and hole_of(left) is None and hole_of(right) is None
