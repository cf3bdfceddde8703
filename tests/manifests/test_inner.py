"""YAML inside a value of YAML: its nodes stand where the file has them."""

from __future__ import annotations

import pytest

from shardlint.findings import Unknown
from shardlint.manifests._inner import documents_in
from shardlint.text.documents import documents
from shardlint.text.nodes import Scalar
from shardlint.text.source import Source

BLOCK = "kind: X\nconfig: |\n  a:\n    - b: 12  # c\n      d: {{ .Values.x }}\n  e: f\n"
QUOTED = 'config: "a:\\n- b: 12\\n  d: {{ .Values.x }}\\ne: f\\n"\n'
FOLDED = "config: >-\n  a: [{b: 12,\n  d: '{{ .Values.x }}'}]\n\n  e: f\n"


def inner(text):
    source = Source("x.yaml", text)
    (outer,) = documents(source).documents
    held = outer.root.get("config")
    assert isinstance(held, Scalar)
    return source, documents_in(held)


@pytest.mark.parametrize("text", [BLOCK, QUOTED, FOLDED])
def test_places_are_those_of_the_file(text):
    source, parsed = inner(text)
    (document,) = parsed.documents
    value = document.root.get("a", 0, "b")
    start = source.offset(value.span.line, value.span.column)
    end = source.offset(value.span.end_line, value.span.end_column)
    assert source.text[start:end] == "12" == value.text
    assert isinstance(document.root.get("a", 0, "d").located(), Unknown)
    assert document.root.get("e").text == "f"


def test_a_place_of_the_file_is_found_in_the_text():
    _, parsed = inner(BLOCK)
    (document,) = parsed.documents
    value = document.root.get("a", 0, "b")
    at = document.source.offset(value.span.line, value.span.column)
    assert document.source.text[at : at + 2] == "12"
    assert document.source.offset(999, 1) == len(document.source.text)


def test_broken_text_is_a_problem_at_its_place():
    _, parsed = inner("config: |\n  a: [1\n  b: }\n")
    (problem,) = parsed.problems
    assert problem.at.line in (2, 3)
