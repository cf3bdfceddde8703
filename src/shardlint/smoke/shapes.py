"""Whether data that another process has sent is of the types that a NamedTuple says."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Row = TypeVar("Row")


def checked(row: Row) -> Row:
    """The same NamedTuple. Raises TypeError where a field of it is of another type than is said there."""
    if not fits(row, type(row)):
        raise TypeError(f"no {type(row).__name__}: {row}")
    return row


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type: a plain one, a NamedTuple, or a tuple, Mapping, Literal or union of such."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if kind is Literal:
        return value in parts
    if kind is tuple:
        return isinstance(value, tuple) and _all_fit(value, parts)
    if kind is Mapping:
        return isinstance(value, Mapping) and all(_all_fit(pair, parts) for pair in value.items())
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint)
        return isinstance(value, hint) and all(fits(getattr(value, name), fields[name]) for name in fields)
    return type(value) is hint or (hint is float and type(value) is int)


def _all_fit(values: tuple[object, ...], parts: tuple[Any, ...]) -> bool:
    if parts[-1] is Ellipsis:
        return all(fits(value, parts[0]) for value in values)
    return len(values) == len(parts) and all(map(fits, values, parts))
