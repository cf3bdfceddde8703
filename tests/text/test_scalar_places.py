"""Every character of every scalar style stands where the file has it."""

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shardlint.text import Scalar, Source, documents

BREAKS = "\n\r\x85\u2028\u2029"


def scalar(text: str, *path: str | int) -> Scalar:
    parsed = documents(Source("x.yaml", text))
    assert not parsed.problems
    found = parsed.documents[0].root.get(*path)
    assert isinstance(found, Scalar)
    return found


def check_places(found: Scalar) -> None:
    """Each character stands at itself, or at the backslash of its escape, or at the break that was folded."""
    fragment = found.fragment()
    offsets = list(fragment.offsets)
    assert fragment.text == found.text
    assert len(offsets) == len(fragment.text) + 1
    assert offsets == sorted(offsets)
    assert len(set(offsets[:-1])) == len(fragment.text)
    for character, offset in zip(fragment.text, offsets[:-1], strict=True):
        written = fragment.source.text[offset]
        if written == "\\" and found.style == '"':
            continue
        if written in BREAKS:
            assert character in " \n\u2028\u2029"
        else:
            assert written == character


def token(found: Scalar, word: str) -> str:
    """line:column of a word within a scalar."""
    fragment = found.fragment()
    start = fragment.text.index(word)
    span = fragment.span(start, start + len(word))
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: vllm serve x -tp 8 # c\n", "1:21-1:22"),
        ("a: vllm serve x\n   -tp\n   8\n", "3:4-3:5"),
        ("a: 'it''s -tp 8'\n", "1:15-1:16"),
        ('a: "x\\t\\x41 -tp 8"\n', "1:17-1:18"),
        ('a: "x -tp=\\x38" # c\n', "1:11-1:15"),
        ('a: "x \\\n    -tp \\\n    8"\n', "3:5-3:6"),
        ("a: |\n  vllm \\\n    -tp 8\n", "3:9-3:10"),
        ("a: |2-\n    vllm\n   8\n", "3:4-3:5"),
        ("a: >-\n  vllm\n  -tp\n\n  8\n\n", "5:3-5:4"),
        ("a: &anchor !!str\n  vllm 8\n", "2:8-2:9"),
        ("a: [vllm, -tp, 8]\n", "1:16-1:17"),
        ("a:\r\n  - vllm\r\n  - 8\r\n", "3:5-3:6"),
    ],
)
def test_a_word_is_found_in_every_style(text, place):
    found = documents(Source("x.yaml", text)).documents[0].root.get("a")
    found = found if isinstance(found, Scalar) else found[-1]
    assert token(found, "8") == place


def test_lines_are_the_editors_lines_not_yamls():
    text = 'a: "x\x85 y\u2028 z"\nb: 8\n'
    assert scalar(text, "b").span.line == 2


def test_a_byte_order_mark_moves_nothing_but_itself():
    text = "\ufeffa: 1\nb: 8\n"
    found = scalar(text, "b")
    assert (found.span.line, found.span.column) == (2, 4)
    assert found.source.text[found.start] == "8"


def test_anchors_and_tags_are_not_part_of_the_value():
    assert scalar("a: &x !!str foo\n", "a").spelled == "foo"
    assert scalar("a: !!str &x 'foo'\n", "a").spelled == "'foo'"


def test_a_block_ends_with_its_last_character():
    found = scalar("a: |\n  x\n  y\n\n# c\nb: 1\n", "a")
    assert (found.span.line, found.span.end_line, found.span.end_column) == (1, 3, 4)


TEXTS = st.text(st.sampled_from("ab8 \n\t'\"\\:#-{}[]é😀\x85\u2028\xa0\r,&*!|>%@`~"), max_size=40)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(["", "'", '"', "|", ">"]), st.integers(5, 40), st.booleans())
def test_whatever_is_dumped_is_found_again(value, style, width, unicode):
    text = yaml.safe_dump({"k": {"v": value}}, default_style=style, width=width, allow_unicode=unicode)
    parsed = documents(Source("x.yaml", text))
    assume(not parsed.problems)
    found = parsed.documents[0].root.get("k", "v")
    assert isinstance(found, Scalar)
    check_places(found)


LINES = st.lists(st.text(st.sampled_from("ab \t#\\'\"é"), max_size=6), max_size=6)
BREAK = st.sampled_from(["\n", "\r\n", "\r", "\x85", "\u2028"])


@settings(max_examples=300, deadline=None)
@given(LINES, st.sampled_from("|>"), st.sampled_from(["", "-", "+", "2", "2-", "+1", "-3"]), BREAK, st.booleans())
def test_block_scalars_of_any_shape(lines, style, indicators, line_break, final_break):
    body = line_break.join("    " + line if line.strip() else line for line in lines)
    text = f"k:\n  v: {style}{indicators}  # c\n{body}" + (line_break if final_break else "")
    parsed = documents(Source("x.yaml", text))
    assume(not parsed.problems)
    found = parsed.documents[0].root.get("k", "v")
    assume(isinstance(found, Scalar) and found.style == style)
    check_places(found)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab \t\n\\'\"n/_\r\x85\u2028é😀"), max_size=20), st.sampled_from(["", "'", '"']))
def test_flow_scalars_of_any_shape(inner, quote):
    parsed = documents(Source("x.yaml", f"- {quote}{inner}{quote}\n"))
    assume(not parsed.problems and len(parsed.documents) == 1)
    for found in parsed.documents[0].root if parsed.documents[0].root is not None else ():
        if isinstance(found, Scalar):
            check_places(found)


def test_places_inside_a_large_scalar_cost_no_time_until_they_are_asked_for():
    text = "a: |\n" + "  x\n" * 100_000
    found = scalar(text, "a")
    assert found.fragment().span(199_998, 199_999).line == 100_001
