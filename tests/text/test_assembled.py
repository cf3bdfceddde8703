"""Documents put together from several files: same values, and every place in the file that it was written in."""

from __future__ import annotations

import pytest

from shardlint.findings import Unknown
from shardlint.text import Scalar, Source, documents, walk
from shardlint.text.assembled import TooLarge, assemble, at, merged, text_at

BELOW = """\
a: 1
b: {x: "quo\\"ted", y: plain text, z: !Ref thing}
script: |
  first
    second \\ line
list: [1, two, null]
gone: 5
tpl: "{{ .Values.x }}"
"""
ABOVE = "b:\n  y: 'over'\ngone: null\nnew: {deep: [true]}\n"


def root(path, text):
    (document,) = documents(Source(path, text)).documents
    return document.root


def test_values_over_values_keep_text_type_and_place():
    below, above = root("below.yaml", BELOW), root("above.yaml", ABOVE)
    (document,) = assemble([merged(below, above)], below.source)
    whole = document.root
    sources = {"below.yaml": BELOW, "above.yaml": ABOVE}
    assert [key.text for key, _ in whole.items()] == ["a", "b", "script", "list", "tpl", "new"]
    assert whole.get("script").text == "first\n  second \\ line\n"
    assert whole.get("a").tag.endswith(":int") and whole.get("list", 2).is_null and whole.get("b", "z").tag == "!Ref"
    assert isinstance(whole.get("tpl").located(), Unknown)
    for path, wanted in ((("b", "y"), ("above.yaml", "'over'")), (("b", "x"), ("below.yaml", '"quo\\"ted"'))):
        span = whole.get(*path).span
        line = sources[span.path].splitlines()[span.line - 1]
        assert (span.path, line[span.column - 1 : span.end_column - 1]) == wanted


def test_a_place_inside_a_block_is_exact():
    below = root("below.yaml", BELOW)
    (document,) = assemble([{"copy": below}], below.source)
    fragment = document.root.get("copy", "script").fragment()
    start = fragment.text.index("second")
    span = fragment.span(start, start + 6)
    assert (span.path, span.line, span.column, span.end_column) == ("below.yaml", 5, 5, 11)


def test_every_scalar_is_the_same_as_before():
    below = root("below.yaml", BELOW)
    (document,) = assemble([below], below.source)
    before = [(node.text, node.span) for node in walk(below) if isinstance(node, Scalar)]
    after = [(node.text, node.span) for node in walk(document.root) if isinstance(node, Scalar)]
    assert [text for text, _ in after] == [text for text, _ in before]
    assert [(span.line, span.column) for _, span in after] == [(span.line, span.column) for _, span in before]


def test_paths_and_texts():
    tree = {"a": root("x.yaml", "b: {c: 8}\n")}
    assert text_at(tree, "a", "b", "c") == "8" and at(tree, "a", "q", "c") is None


def test_aliases_of_aliases_end():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    bomb = root("bomb.yaml", "\n".join(lines) + "\n")
    with pytest.raises(TooLarge):
        assemble([bomb], bomb.source)
