"""`NamedTuple` at a tenth of its price: a run makes a hundred of them, which took a fifth of a check of one file."""

from __future__ import annotations

from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter  # what `collections.namedtuple` reads a field with

    class _Record(tuple):
        """What all of them can do, as `collections.namedtuple` has it."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        __replace__ = _replace

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            said = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({said})"

    class _Maker(type):
        """Makes the class of a body with annotations, which stay the text that they are.

        `typing` compiles each of them, to check that it could be a type: mypy knows that already.
        """

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace["__annotations__"])
            defaults = {field: namespace[field] for field in fields if field in namespace}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            namespace.update((field, _tuplegetter(place, field)) for place, field in enumerate(fields))
            namespace.update(
                __slots__=(),
                __new__=_constructor(name, fields, tuple(defaults.values())),
                __match_args__=fields,
                _fields=fields,
                _field_defaults=defaults,
            )
            return type(name, (_Record,), namespace)

    class NamedTuple(metaclass=_Maker):
        """The base in whose place a tuple stands once the class is made."""


def _constructor(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> FunctionType:
    """A function of the class and the fields that makes a tuple of them."""
    code = _code(len(fields)).replace(co_varnames=("cls", *fields))
    function = FunctionType(code, {"make": tuple.__new__}, "__new__", defaults)
    function.__qualname__ = f"{name}.__new__"
    return function


@cache
def _code(width: int) -> CodeType:
    """The code of such a function of so many fields: to compile it for each class takes longer than all the rest."""
    names = "".join(f"_{place}, " for place in range(width))
    function: FunctionType = eval(f"lambda cls, {names}: make(cls, ({names}))")
    return function.__code__
