"""Shardlint's NamedTuple beside that of `typing`: whatever its classes are asked for, they answer the same."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from shardlint.findings import records

BODY = '''
class Layer(NamedTuple):
    """A layer."""

    name: str
    width: int = 4
    "Columns."
    parts: tuple[Layer, ...] = ()

    @property
    def wide(self) -> bool:
        return self.width > 4

    @classmethod
    def of(cls, name: str) -> Layer:
        return cls(name, width=8)

    def __str__(self) -> str:
        return f"{self.name} of {self.width}"
'''


class Kept(records.NamedTuple):
    name: str
    width: int = 4


def made_by(base):
    scope = {"NamedTuple": base, "__name__": __name__}
    exec("from __future__ import annotations\n" + BODY, scope)
    return scope["Layer"]


OURS, THEIRS = made_by(records.NamedTuple), made_by(typing.NamedTuple)


def test_the_classes_are_alike():
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "_fields", "_field_defaults", "__match_args__"):
        assert getattr(OURS, name) == getattr(THEIRS, name), name
    assert {name for base in OURS.__mro__ for name in vars(base)} >= set(vars(THEIRS)) - {"__orig_bases__"}
    assert issubclass(OURS, tuple) and not hasattr(OURS("a"), "__dict__")


@pytest.mark.parametrize(
    "ask",
    [
        lambda layer: layer("a"),
        lambda layer: layer("a") == ("a", 4, ()),
        lambda layer: repr(layer("a", parts=(1,))),
        lambda layer: str(layer("a")),
        lambda layer: layer.of("b").wide,
        lambda layer: layer("a")._replace(width=9)._asdict(),
        lambda layer: layer._make(["a", 1, ()]),
        lambda layer: layer(name="b", parts=(2,)),
        lambda layer: type(layer("b")._replace(name="c")).__name__,
        lambda layer: hash(layer("a")),
        lambda layer: copy.copy(layer("a")).parts,
    ],
)
def test_they_answer_the_same(ask):
    assert ask(OURS) == ask(THEIRS)


def test_they_can_be_pickled():
    kept = Kept("a", 2)
    assert pickle.loads(pickle.dumps(kept)) == kept and type(pickle.loads(pickle.dumps(kept))) is Kept


@pytest.mark.parametrize("base", [records.NamedTuple, typing.NamedTuple])
def test_a_field_without_a_default_stands_before_those_with_one(base):
    with pytest.raises(TypeError):
        exec("class Wrong(NamedTuple):\n    a: int = 1\n    b: int\n", {"NamedTuple": base, "__name__": __name__})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda layer: layer(),
        lambda layer: layer("a", 1, (), 2),
        lambda layer: layer("a", height=1),
        lambda layer: layer("a")._replace(height=1),
        lambda layer: layer._make(["a"]),
    ],
)
def test_they_refuse_the_same(wrong):
    with pytest.raises((TypeError, ValueError)) as theirs:
        wrong(THEIRS)
    with pytest.raises(theirs.type) as ours:
        wrong(OURS)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("base", [records.NamedTuple, typing.NamedTuple])
def test_they_cannot_be_changed(base):
    with pytest.raises(AttributeError):
        made_by(base)("a").name = "b"
