"""Templates are seen before YAML is parsed, and move nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint.findings import Located, Unknown
from shardlint.text import MASK, Scalar, Source, documents, walk
from shardlint.text.templates import mask


def read(text):
    found = documents(Source("x.yaml", text))
    assert not found.problems
    return found.documents[0]


def known(text):
    """The values that do not depend on a template, with their lines."""
    values = (node.located() for node in walk(read(text).root) if isinstance(node, Scalar))
    return {value.value: value.span.line for value in values if isinstance(value, Located)}


def test_a_template_is_no_mapping():
    value = read("a: {{ .Values.tp }}\nb: 8\n").root.get("a").located()
    assert isinstance(value, Unknown)
    assert (value.reason, value.spelled, value.span.column, value.span.end_column) == (
        "templated",
        "{{ .Values.tp }}",
        4,
        20,
    )


@pytest.mark.parametrize(
    "action",
    [
        "{{ .x }}", "{{- .x -}}", '{{ printf "%s}}" .x }}', "{{ `}}` }}", "{{ x | default('}}') }}", "{{/* don't }} */}}",
        "{{ .x\n   | quote }}", "{% if x %}8{% endif %}", "{{ a }}-{{ b }}", "pre{{ x }}post", '"{{ printf "a" }}"',
        "'{{ x }}'", "[{{ a }}, {{ b }}]", "${{ matrix.x }}",
    ],
)  # fmt: skip
def test_every_kind_of_action_keeps_the_places_of_what_follows(action):
    text = f"a: {action} # c\nb: 8\n"
    document = read(text)
    assert document.templated
    assert document.root.get("a").templated
    assert document.root.get("b").located().span.line == 2 + action.count("\n")
    assert document.root.get("b").located().value == "8"


def test_control_lines_vanish():
    text = "{{- if .Values.on }}\na:\n  {{- with .x }}\n  b: 1\n  {{- end }}\n  c: 8\n{{- end }}\n"
    assert known(text) == {"a": 2, "c": 6, "8": 6}
    assert read(text).root.get("a", "b").templated


def test_what_a_condition_may_leave_out_is_unknown_unless_it_is_everything():
    text = "a:\n- serve\n{{- if .x }}\n- --tp\n- '8'\n{{- else }}\n- --tp\n- '4'\n{{- end }}\n- --pp\n"
    assert set(known(text)) == {"a", "serve", "--pp"}


def test_blocks_of_yaml_put_in_by_a_template_are_unknown():
    text = 'a:\n{{ toYaml .r | indent 2 }}\nb:\n  {{- include "x" . | nindent 2 }}\n  c: 8\nd:\n'
    root = read(text).root
    assert isinstance(root.get("a").located(), Unknown)
    assert not root.get("a").is_null
    assert root.get("b").templated
    assert root.get("b", "c").located().value == "8"
    assert root.get("d").is_null


def test_a_template_that_prints_everything_is_one_unknown_document():
    document = read('{{ include "all" . }}\n')
    assert (document.root, document.templated) == (None, True)


@pytest.mark.parametrize("style", ["|", ">-", "|2"])
def test_chat_templates_in_block_scalars_leave_the_rest_readable(style):
    text = f"a: {style}\n  {{%- for m in ms %}}\n  {{{{ m }}}}\n  {{%- endfor %}}\nb: 8\n"
    assert known(text) == {"a": 1, "b": 5, "8": 5}
    assert "{%- for m in ms %}" in read(text).root.get("a").text


def test_control_lines_left_of_a_block_scalar_do_not_end_it():
    text = "a: |\n  x\n{{- if .b }}\n  y\n{{- end }}\nc: 8\n"
    document = read(text)
    assert document.root.get("c").located().value == "8"
    assert document.root.get("a").templated


def test_comments_and_unclosed_braces_are_left_alone():
    assert not mask("# {{ x }}\na: 1\n").pieces
    assert not read("# {{ x }}\na: 1\n").templated
    assert documents(Source("x.yaml", "a: {{ x\n")).problems
    assert mask("a: ${#x} {# c #}\n").text == "a: ${#x} {# c #}\n"


def test_only_the_document_with_the_template_is_templated():
    found = documents(Source("x.yaml", "a: 1\n---\nb: {{ x }}\n---\nc: 1\n")).documents
    assert [document.templated for document in found] == [False, True, False]


def test_a_template_that_only_rendering_makes_yaml_is_a_note():
    (problem,) = documents(Source("x.yaml", "a: {{ x }}: y: z\n")).problems
    assert problem.severity == "note"


PARTS = st.sampled_from(
    [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        " if ",
        "end",
        "/*",
        "*/",
        "'",
        '"',
        "`",
        "\n",
        "a: ",
        "- ",
        "|\n",
        "  ",
        "x",
        "#",
        "\\",
        "\r\n",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PARTS, max_size=30).map("".join))
def test_masking_keeps_length_and_everything_outside(text):
    masked = mask(text)
    assert len(masked.text) == len(text)
    inside = {at for start, end in masked.pieces for at in range(start, end)}
    for at, (before, after) in enumerate(zip(text, masked.text, strict=True)):
        assert at in inside or before == after or (before.isspace() and after.isspace()) or after in (MASK, " ", "\\")
    documents(Source("x.yaml", text))


def test_many_braces_cost_little():
    mask("{{ ' " * 50_000)
    mask("{{ }}" * 50_000 + '{{ " `')
    mask("a: |\n" + "  {{ if x }}\n" * 20_000)
