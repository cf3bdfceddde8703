"""What a file's documents are, told without parsing it: never another thing than parsing tells."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shardlint.text import Mapping, Scalar, Source, documents
from shardlint.text.documents import is_well_formed
from shardlint.text.heads import Head, heads

SCALER = """\
# A licence.

---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler  # grows and shrinks
metadata:
  name: chat
spec:
  metrics:
  - type: "Pods"
---
kind: 'Service'
spec: {ports: [80]}
ports:
- 80
"""


def test_signs_inside_of_text_are_no_anchors():
    text = "kind: CronJob\nspec:\n  a: 2 * b && c\n  schedule: '* * * * 5'\n"
    assert heads(Source("a.yaml", text)) == [Head("CronJob", "", ("kind", "spec"))]


def test_objects_are_told_by_their_unindented_lines():
    assert heads(Source("a.yaml", SCALER)) == [
        Head("HorizontalPodAutoscaler", "autoscaling/v2", ("apiVersion", "kind", "metadata", "spec")),
        Head("Service", "", ("kind", "spec", "ports")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "kind: List\nitems: []\n",
        "kind: PodList\n",
        "kind: Template\n",
        "  kind: Pod\n",
        "- kind: Pod\n",
        "{kind: Pod}\n",
        "kind: {{ .Values.kind }}\n",
        "kind: &kind Pod\n",
        "spec: [*kind]\n",
        "kind: Pod\nkind: Service\n",
        "kind: Service\nspec: {\nkind: Pod}\n",
        'note: "\nkind: Service"\n',
        "note: '\nkind: Service'\n",
        "<<: {kind: Pod}\n",
        "? kind\n: Pod\n",
        '"kind": Pod\n',
        "kind: Service\r\n",
        "kind: Service\n--- {kind: Pod}\n",
        "kind: Service\nkind\n",
        "kind: Service\n\n  and more\n",
        "kind: Service\n---\n- kind: Pod\n",
        "kind: Service\nmore: a\u2028kind: Pod\n",
    ],
)
def test_the_others_are_left_to_the_parser(text):
    assert heads(Source("a.yaml", text)) is None


@pytest.mark.parametrize("path", ["a.json", "a.tpl", "a.sh", "Dockerfile"])
def test_other_languages_are_left_to_their_parsers(path):
    assert heads(Source(path, "kind: Service\n")) is None


LINES = (
    "kind: Pod", "kind: 'Pod'", 'kind: "Service"', "kind: a b", "kind:", "apiVersion: v1", "apiVersion: a.b/v1 # x", "spec:",
    "  name: a", "  - b", "- c", "- d: e", "   ", "", "# f", "  # g", "key: {h: i}", "key: [j, k]", "text: |", "text: >-",
    "other: 'l'", 'other: "m', 'n"', "more: o'", "---", "--- # p", "...", "!t q: r", "? s", "\tu: v", "w: x: y",
)  # fmt: skip
SIGNS = ("", "", "", "", '"', "'", "{", "}", "]", "|", "#", " #", " ", "é", "\u2028", "&a ", "*a", "<<: ", ":")
LINE = st.tuples(st.sampled_from(SIGNS), st.sampled_from(LINES), st.sampled_from(SIGNS)).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.lists(LINE, min_size=1, max_size=8).map("\n".join))
@example("kind: Pod\nspec: |\n  a\nkey: >\n  b\n")
@example("kind: Pod #\n---\nkey:\n- a\n")
@example("kind: Pod\nkey: [a,\nb: c]\n")
@example('apiVersion: Pod"')
def test_parsing_tells_the_same(text):
    source = Source("a.yaml", text)
    told = heads(source)
    if told is None or not is_well_formed(source):
        return
    parsed = documents(source)
    assert parsed.problems == ()
    assert told == [head_of(document.root) for document in parsed.documents if not is_empty(document.root)]


def is_empty(root):
    return root is None or (isinstance(root, Scalar) and root.is_null)


def head_of(root):
    assert isinstance(root, Mapping)
    words = {name: root.get(name) for name in ("kind", "apiVersion")}
    assert all(word is None or isinstance(word, Scalar) for word in words.values())
    kind, version = ("" if word is None else word.text for word in words.values())
    return Head(kind, version, tuple(root.names))
