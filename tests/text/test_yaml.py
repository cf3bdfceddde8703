"""YAML and JSON files as documents of nodes: merge keys, anchors, duplicates, and what is broken."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shardlint.findings import Located, Span, Unknown
from shardlint.text import Mapping, Scalar, Sequence, Source, documents, duplicates_below, kind_of, walk
from shardlint.text import yaml as yaml_text


def parsed(text, path="x.yaml"):
    return documents(Source(path, text))


def root(text, path="x.yaml"):
    found = parsed(text, path)
    assert not found.problems
    return found.documents[0].root


def plain(node):
    """A node as Python values, all of them text."""
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.items()}
    return [plain(item) for item in node] if isinstance(node, Sequence) else node.text


def test_paths_reach_through_mappings_and_sequences():
    spec = root("spec:\n  containers:\n  - name: a\n  - name: b\n    args: [x, 8]\n")
    assert spec.get("spec", "containers", 1, "args", -1).text == "8"
    assert spec.get("spec", "missing", 1, "args") is None
    assert spec.get("spec", "containers", 9) is None
    assert spec.get("spec", "containers", "name") is None


@pytest.mark.parametrize("text", ["yes", "0o7", "1_000", "1:30", "0x1F", "2001-01-01", ".5", "1e3", "on", "~x"])
def test_values_are_text_whatever_yaml_makes_of_them(text):
    value = root(f"a: {text}\n").get("a")
    assert value.text == text
    assert value.located() == Located(text, Span("x.yaml", 1, 4, 1, 4 + len(text)), text)


@pytest.mark.parametrize(("text", "null"), [("", True), ("~", True), ("null", True), ("''", False), ("'null'", False)])
def test_null_is_what_is_written_as_null(text, null):
    assert root(f"a: {text}\n").get("a").is_null is null


def test_explicit_keys_win_over_merged_ones_and_earlier_sources_over_later():
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\nd: {<<: {<<: *b, z: 4}}\n"
    found = root(text)
    assert plain(found.get("c")) == {"x": "3", "y": "1", "z": "2"}
    assert plain(found.get("d")) == {"y": "2", "z": "4"}
    assert found.get("c", "y").span.line == 1


def test_an_alias_is_the_node_of_its_anchor():
    found = root("a: &x {k: 8}\nb: *x\n")
    assert found.get("b") == found.get("a")


def test_an_anchor_may_be_set_anew():
    assert plain(root("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")) == {"a": "1", "b": "1", "c": "2", "d": "2"}


def test_cycles_end():
    found = root("a: &a\n  b: *a\n  <<: *a\n")
    assert found.get(*["a", "b"] * 2) is None or found.get("a", "b", "b") == found.get("a")
    assert len(list(walk(found))) == 5


def test_aliases_of_aliases_do_not_multiply():
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 60)]
    merges = ["m0: &m0 {k0: v}"] + [f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], k{i}: v}}" for i in range(1, 60)]
    start = time.process_time()
    found = root("\n".join(lines + merges) + "\n")
    assert len(list(walk(found))) < 1000
    assert len(found.get("m59")) == 60
    assert time.process_time() - start < 1


def test_of_duplicate_keys_the_last_counts_and_all_are_reported():
    found = root("a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n")
    assert found.get("a").text == "3"
    (duplicate,) = found.duplicates
    assert (duplicate.key, duplicate.first.line, duplicate.again.line) == ("a", 1, 3)
    assert [each.again.column for each in found.get("c").duplicates] == [11]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a:\n{{- if .x }}\n  b: 1\n{{- else }}\n  b: 2\n{{- end }}\n", []),
        ("a:\n  b: 1\n{{- if .x }}\n  b: 2\n{{- end }}\n", []),
        ("{% if x %}\na: 1\n{% else %}\na: 2\n{% endif %}\n", []),
        ("{{ .x }}: 1\n{{ .y }}: 2\n", []),
        ("{{- if .x }}\na:\n  b: 1\n  b: 2\n{{- end }}\n", ["b"]),
        ("{{- range .x }}\n- b: {{ .y }}\n  b: {{ .z }}\n{{- end }}\n", ["b"]),
    ],
)
def test_a_key_that_a_template_may_leave_out_is_no_duplicate(text: str, keys: list[str]) -> None:
    assert [duplicate.key for duplicate in duplicates_below(root(text))] == keys


def test_unknown_tags_are_read_and_their_values_are_not_trusted():
    found = root("a: !Ref Name\nb: !override [1]\nc: !!str 8\n")
    assert found.get("a").text == "Name"
    assert found.get("a").located() == Unknown("the tag !Ref decides it", Span("x.yaml", 1, 9, 1, 13), "Name")
    assert found.get("b").tag == "!override"
    assert found.get("c").located().value == "8"


def test_collections_end_with_their_last_entry():
    found = root("a:\n  b: 1\n  # c\n\nd:\n- 1\n- {x: y}  # z\ne: 2\n")
    assert found.get("a").span == Span("x.yaml", 2, 3, 2, 7)
    assert found.get("d").span == Span("x.yaml", 6, 1, 7, 9)


def test_documents_between_all_kinds_of_markers():
    found = parsed("a: 1\n--- # c\nb: 2\r\n--- \nc: 3\n...\n---\nd: 4\n")
    assert [plain(document.root) for document in found.documents] == [{"a": "1"}, {"b": "2"}, {"c": "3"}, {"d": "4"}]


def test_directives_go_with_the_document_after_them():
    text = "# c\n---\n# nothing\n--- \na: 1\n...\n%YAML 1.1\n--- [\n...\n%TAG ! tag:x\n--- |\n  text\n"
    found = parsed(text)
    assert [plain(document.root) for document in found.documents] == ["", {"a": "1"}, "text\n"]
    assert [problem.at.line for problem in found.problems] == [9]


def test_comments_alone_are_no_fault():
    found = parsed("# nothing\n\n# here\n")
    assert not found.problems
    assert all(document.root is None or document.root.is_null for document in found.documents)


@pytest.mark.parametrize(
    ("broken", "line", "column", "reason"),
    [
        ("a: b: c", 4, 5, "mapping values are not allowed in this context"),
        ("a: [1, 2", 5, 1, "did not find expected ',' or ']'"),
        ("\ta: 1", 4, 1, "found character that cannot start any token"),
        ("a: *nowhere", 4, 4, "found undefined alias"),
        ("é: \x01", 4, 4, "control characters are not allowed"),
        ("a: \ud800", 4, 4, "half a surrogate pair stands there"),
        ('a: "\\q"', 4, 5, "found unknown escape character"),
        ("a: 1\n b: 2", 5, 3, "mapping values are not allowed in this context"),
    ],
)
def test_a_broken_document_spoils_no_other(broken, line, column, reason):
    found = parsed(f"first: 1\n---\n# c\n{broken}\n---\nlast: 8\n")
    assert [plain(document.root) for document in found.documents] == [{"first": "1"}, {"last": "8"}]
    assert found.documents[1].root.get("last").span.line == broken.count("\n") + 6
    (problem,) = found.problems
    assert (problem.at.line, problem.at.column) == (line, column)
    assert reason in problem.message


def test_conflict_markers_are_named():
    (problem,) = parsed("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> other\n").problems
    assert problem.at.line == 2
    assert "conflict" in problem.message


def test_a_text_with_conflicts_is_read_with_their_first_side():
    text = (
        "a: 1\n<<<<<<< HEAD\n# b\n=======\nb: 2\nc: 2\n>>>>>>> other\nscript: |\n  run \\\n    --x 1 \\\n"
        "<<<<<<< HEAD\n    --y 1 \\\n||||||| base\n    --y 0 \\\n=======\n>>>>>>> other\n    --z 1\n"
    )
    found = parsed(text)
    (document,) = found.documents
    assert len(found.problems) == 1
    assert document.root.get("b") is None
    script = document.root.get("script")
    assert [line.strip(" \\") for line in script.text.splitlines()] == ["run", "--x 1", "--y 1", "--z 1"]
    assert script.fragment().text == script.text
    assert parsed("a: [\n<<<<<<< HEAD\n").documents == ()


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "- " * 50_000, "a: {" * 9_999, "x:\n" + "".join(" " * i + "- \n" for i in range(3000))]
)
def test_deep_nesting_is_a_problem(text):
    found = parsed(text)
    assert len(found.problems) == 1


def test_json_is_read_as_json():
    text = (
        '\ufeff{"a\\ud83d\\ude00": ["x\\/y", 1.5e3, null, true, {}], "b": "é\\ud83d", "<<": "\u2028 z", "k'
        + "k" * 2000
        + '": 1}'
    )
    found = root(text, "x.json")
    assert found.get("a😀", 0).text == "x/y"
    assert [scalar.text for scalar in found.get("a😀") if isinstance(scalar, Scalar)] == [
        "x/y",
        "1.5e3",
        "null",
        "true",
    ]
    assert found.get("a😀", 2).is_null
    assert found.get("b").text == "é\ufffd"
    assert found.get("<<").text == "\u2028 z"
    assert found.get("a😀").spelled == '["x\\/y", 1.5e3, null, true, {}]'


def test_json_that_is_none_is_a_problem_with_a_place():
    found = parsed('{"a": 1,\n "b": 2,}', "x.json")
    (problem,) = found.problems
    assert (problem.at.line, problem.at.column) == (2, 9)
    assert "not valid JSON" in problem.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def same(node, value):
    if isinstance(value, dict):
        return {key.text for key, _ in node.items()} == set(value) and all(
            same(node.get(k), v) for k, v in value.items()
        )
    if isinstance(value, list):
        return len(node) == len(value) and all(same(one, other) for one, other in zip(node, value, strict=True))
    return node.text == (value if isinstance(value, str) else json.dumps(value))


@settings(max_examples=200, deadline=None)
@given(JSON.filter(lambda value: isinstance(value, list | dict)), st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_any_json_comes_back_with_its_places(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = root(text, "x.json")
    assert same(found, value)
    for node in walk(found):
        written = text[node.start : node.end]
        if isinstance(node, Scalar):
            fragment = node.fragment()
            assert fragment.text == node.text
            assert list(fragment.offsets) == sorted(fragment.offsets)
            for character, offset in zip(fragment.text, fragment.offsets, strict=False):
                assert text[offset] in (character, "\\")
        else:
            assert json.loads(written) is not None


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("ab: -\n\t'\"[]{},&*!|>%#?@`~\\<.=é\x00\x85\ufeff\ud800{{}}1"), max_size=40),
    st.sampled_from(["x.yaml", "x.json", "-"]),
)
@example("!\x851", "x.yaml")
@example("&-:a}|&-'\x85", "x.yaml")
def test_no_text_is_too_strange(text, path):
    found = parsed(text, path)
    for document in found.documents:
        for node in walk(document.root):
            assert 0 <= node.start <= node.end <= len(text)
            assert node.span.line >= 1
            assert node.templated in (True, False)
            if isinstance(node, Scalar):
                assert isinstance(node.located(), Located | Unknown)
                assert len(node.fragment().offsets) == len(node.fragment().text) + 1


def test_without_the_c_library_the_same_is_read(monkeypatch):
    text = "a: &x [1, {b: 'c d'}]\nd: |\n  e\n  f\n"
    expected = plain(root(text)), root(text).get("d").fragment().offsets
    monkeypatch.setattr(yaml_text, "_Loader", yaml_text.yaml.SafeLoader)
    assert (plain(root(text)), root(text).get("d").fragment().offsets) == expected
    assert "nested too deeply" in parsed("[" * 5000).problems[0].message


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("a.sh", "a: 1", "shell"),
        ("a.yaml", "#!/bin/bash\n", "yaml"),
        ("serve", "#!/usr/bin/env bash\nvllm serve x\n", "shell"),
        ("serve", "vllm serve x\n", "shell"),
        ("-", "# c\napiVersion: v1\n", "yaml"),
        ("-", '{"a": 1}', "yaml"),
        ("a.rs", "use x;\n", None),
        ("a.py", "import x\n", "python"),
        ("a", "#!/usr/bin/python\nimport x\n", None),
        ("a.yaml-template", "x", "yaml"),
        ("README.md", "hello\n", None),
    ],
)
def test_the_kind_of_a_file(path, text, kind):
    assert kind_of(Source(path, text)) == kind


def test_another_language_that_looks_like_yaml_is_not_reported():
    assert parsed("a: b: c\n", "vllm.toml") == parsed("x\n", "a.rs")
