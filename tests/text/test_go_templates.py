"""Templates filled in with their chart's values: the text is Helm's, what is not told stays, and places are kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint.text import Source, documents
from shardlint.text.go_templates import filled

VALUES = """\
name: chat
tp: 8
empty: ""
off: false
on: true
nested: {a: {b: deep}}
image: {repository: vllm/vllm-openai, tag: null}
args:
- --one
- "--two"
resources:
  limits:
    nvidia.com/gpu: 4  # cards
  other: [1]
env: &anchor {A: "1"}
holder: {again: *anchor}
"""
CHART = "name: chart\nappVersion: v0.33.0\n"


def root(path, text):
    (document,) = documents(Source(path, text)).documents
    return document.root


def fill(text):
    return filled(Source("templates/x.yaml", text), root("values.yaml", VALUES), root("Chart.yaml", CHART))


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("a: {{ .Values.tp }}\n", "a: 8\n"),
        ("a: {{ $.Values.nested.a.b }}\n", "a: deep\n"),
        ("a: {{ .Values.tp | quote }}\n", 'a: "8"\n'),
        (
            'a: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"\n',
            'a: "vllm/vllm-openai:v0.33.0"\n',
        ),
        ('a: {{ default "x" .Values.empty }} {{ .Values.nothing.at.all | default 3 }}\n', "a: x 3\n"),
        ('a: {{ printf "%s-%d" .Values.name .Values.tp }}\n', "a: chat-8\n"),
        ('a: {{ required "say it" .Values.name }}\n', "a: chat\n"),
        ("{{- if .Values.on }}\na: 1\n{{- else }}\nb: 2\n{{- end }}\n", "\na: 1\n"),
        (
            '{{- if .Values.off }}\na: 1\n{{- else if eq .Values.name "chat" }}\nb: 2\n{{- else }}\nc: 3\n{{- end }}\n',
            "\nb: 2\n",
        ),
        ("a: 1\n{{- if .Values.empty }}\nb: 2\n{{- end }}\nc: 3\n", "a: 1\nc: 3\n"),
        ("{{- if and .Values.on (not .Values.off) (gt .Values.tp 4) }}\na: 1\n{{- end }}\n", "\na: 1\n"),
        ("args:\n{{- range .Values.args }}\n- {{ . | quote }}\n{{- end }}\n", 'args:\n- "--one"\n- "--two"\n'),
        ("{{- range $k, $v := .Values.nested.a }}\n{{ $k }}: {{ $v }}\n{{- end }}\n", "\nb: deep\n"),
        ("{{- range $i, $v := .Values.args }}{{ $i }}{{ $v }},{{- end }}\n", "0--one,1--two,\n"),
        ("{{- range .Values.none }}x{{ else }}y{{ end }}\n", "y\n"),
        ("{{- with .Values.nested }}\na: {{ .a.b }} {{ $.Values.tp }}\n{{- end }}\n", "\na: deep 8\n"),
        ("{{- with .Values.none }}\na: 1\n{{- end }}\nb: 2\n", "\nb: 2\n"),
        ("r:\n  {{- toYaml .Values.resources.limits | nindent 4 }}\n", "r:\n    nvidia.com/gpu: 4\n"),
        ("r:\n{{ toYaml .Values.args | indent 2 }}\n", 'r:\n  - --one\n  - "--two"\n'),
        ("{{- $t := .Values.tp -}}\na: {{ $t }}\n", "a: 8\n"),
        ("{{- $t := 1 }}{{ if .Values.on }}{{ $t = 2 }}{{ end }}\na: {{ $t }}\n", "\na: 2\n"),
        ("{{/* a comment */}}\na: {{ .Values.tp }}\n", "\na: 8\n"),
        ('{{- define "x" }}\nq: 1\n{{- end }}\na: {{ .Values.tp }}\n', "\na: 8\n"),
        ("a: {{ .Values.on }} {{ .Values.nothing }}\n", "a: true \n"),
    ],
)
def test_what_is_told_is_what_helm_makes_of_it(template, made):
    assert fill(template).text == made


@pytest.mark.parametrize(
    "left",
    [
        '{{ include "chart.name" . | nindent 4 }}',
        "{{ .Release.Name }}",
        "{{ .Values.tp | b64enc }}",
        "{{ index .Values.args 0 }}",
        "{{ toYaml .Values.holder }}",
        "{{ (.Values.nested).a }}",
        "{{ .Values.nested }}",
        '{{ lookup "v1" "Pod" }}',
        "{{ $nothing }}",
    ],
)
def test_anything_more_stays_as_it_is_written(left):
    template = f"x: {{{{ .Values.tp }}}}\ny: {left}\n"
    assert fill(template).text == f"x: 8\ny: {left}\n"


def test_a_block_whose_condition_is_not_told_stays_with_what_it_holds_filled_in():
    template = "{{- if .Release.IsUpgrade }}\na: {{ .Values.tp }}\n{{- else }}\nb: {{ .Values.name }}\n{{- end }}\n"
    made = "{{- if .Release.IsUpgrade }}\na: 8\n{{- else }}\nb: chat\n{{- end }}\n"
    assert fill(template).text == made


def test_what_an_uncertain_block_sets_is_not_known_after_it():
    text = "{{- $t := 1 }}{{ if .Release.X }}{{ $t = 2 }}{{ end }}\na: {{ $t }}\n"
    assert fill(text).text.endswith("a: {{ $t }}\n")


def test_an_else_after_known_conditions_that_are_false():
    template = "z: 0\n{{- if .Values.off }}\na: 1\n{{- else if .Release.X }}\nb: {{ .Values.tp }}\n{{- else }}\nc: 3\n{{- end }}\n"
    made = fill(template + "d: {{ .Values.tp }}\n").text
    assert "a: 1" not in made and "b: 8" in made and "c: 3" in made
    (document,) = documents(Source("x.yaml", made)).documents
    assert document.root.get("b").templated and not document.root.get("d").templated


def test_places_are_in_the_values_where_a_value_stands_alone_and_else_in_the_template():
    template = (
        'a: {{ .Values.tp }}\nb: "{{ .Values.name }}"\nc: --x={{ .Values.tp }}\n'
        "d:\n  {{- toYaml .Values.resources | nindent 2 }}\ne: plain\n"
    )
    (document,) = documents(fill(template)).documents
    root = document.root
    places = {name: root.get(name).span for name in "abce"}
    places["d"] = root.get("d", "limits", "nvidia.com/gpu").span
    assert (places["a"].path, places["a"].line, places["a"].column, places["a"].end_column) == ("values.yaml", 2, 5, 6)
    assert (places["c"].path, places["c"].line) == ("templates/x.yaml", 3)
    assert (places["d"].path, places["d"].line, places["d"].column) == ("values.yaml", 13, 21)
    assert (places["e"].path, places["e"].line, places["e"].column) == ("templates/x.yaml", 6, 4)


@pytest.mark.parametrize(
    "text", ["a: 1\n", "{{ if .Values.on }}\na: 1\n", "a: 1\n{{ end }}\n", "{{ else }}", "{% if x %}{{ y }}"]
)
def test_nothing_is_made_of_what_has_no_templates_or_does_not_close(text):
    assert fill(text) is None


def test_loops_in_loops_end():
    inner = "{{ $.Values.tp }}" * 50
    text = "{{ range $.Values.args }}" * 12 + inner + "{{ end }}" * 12
    assert fill(text) is None


PIECES = ["{{ if .Values.on }}", "{{- else }}", "{{ end -}}", "{{ range .Values.args }}", "{{ . }}", "{{ with .Values.nested }}",
          "{{ .Values.tp | quote }}", "{{ (", "}}", "|", "{{ toYaml . | nindent 2 }}", "a: ", "\n", "{{ $x := 1 }}", "{{ $x }}"]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_whatever_is_written_nothing_is_raised_and_every_place_lies_in_a_file(pieces):
    made = fill("".join(pieces))
    if made is not None:
        for at in range(0, len(made.text), 7):
            assert made.span(at, at + 1).line >= 1
