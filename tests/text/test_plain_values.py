"""Nodes become what `yaml.safe_load` makes of them, and hostile ones nothing."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shardlint.text import Source, documents
from shardlint.text.plain_values import NoPlainValue, plain

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text("ab 1:-.", max_size=8))
KEYS = st.text("abc-_", min_size=1, max_size=5)
VALUES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner), st.dictionaries(KEYS, inner)), max_leaves=12)


def value(text: str) -> object:
    (document,) = documents(Source("x.yaml", text)).documents
    assert document.root is not None
    return plain(document.root)


@given(st.dictionaries(KEYS, VALUES, min_size=1))
def test_values_are_those_of_safe_load(written: dict[str, object]) -> None:
    assert value(yaml.safe_dump(written)) == written


@pytest.mark.parametrize(
    "text",
    ["a: yes", "a: on", "a: 1_000", "a: 0o17", "a: 017", "a: 1e5", "a: 1.0e+5", "a: 12:30", "a: 2020-01-01", "a: ~",
     "a: 'yes'", "a: !!str 8", "b: &x {c: 1, d: 2}\na: {<<: *x, d: 3}", "a: .inf", "a:"],
)  # fmt: skip
def test_the_rules_are_those_of_yaml_1_1(text: str) -> None:
    assert value(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: !Ref b",
        "a: {{ .Values.tp }}",
        "a: 2020-13-45",
        "a: &a [1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e]",
        "a: &a [*a]",
    ],
)
def test_what_has_no_value_says_so(text: str) -> None:
    with pytest.raises(NoPlainValue):
        value(text)
