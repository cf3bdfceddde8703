"""Java properties: what `java.util.Properties.load` makes of a file, and where it stands."""

from __future__ import annotations

import pytest

from shardlint.text.documents import documents
from shardlint.text.properties import properties
from shardlint.text.source import Source


def read(text: str) -> dict[str, str]:
    return {item.key.text: item.value.text for item in properties(Source("x.properties", text))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("engine=Python\n", {"engine": "Python"}),
        ("a = b\nc: d\ne f\n", {"a": "b", "c": "d", "e": "f"}),
        ("  a=b", {"a": "b"}),
        ("# one\n! two\n\na=b\r\nc=d", {"a": "b", "c": "d"}),
        ("a=8 # cards\n", {"a": "8 # cards"}),
        ("a=1,\\\n   2\nb=3", {"a": "1,2", "b": "3"}),
        ("a\\ b=c\\:d\\u0041\\n", {"a b": "c:dA\n"}),
        ("a\nb=\nc==d", {"a": "", "b": "", "c": "=d"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("=x\ny=z", {"": "x", "y": "z"}),
        ("\ufeffa=b", {"a": "b"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert read(text) == expected


def test_values_know_their_places() -> None:
    (item,) = properties(Source("x.properties", "\n  a = b\\\n  c  "))
    span = item.value.span(0, 2)
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 7, 3, 4)


def test_the_name_tells_the_language() -> None:
    (document,) = documents(Source("serving.properties", "engine: x\n")).documents
    assert (document.kind, document.root, document.script) == ("properties", None, None)
