"""`# shardlint: ignore[NAME] reason`."""

import pytest

from shardlint.text import Source
from shardlint.text.comments import ignores, problems


@pytest.mark.parametrize(
    ("text", "names", "reason", "line"),
    [
        ("a: 1  # shardlint: ignore[query-heads] padded on purpose\n", ("query-heads",), "padded on purpose", 1),
        ("# shardlint: ignore[SL101]\na: 1\n", ("SL101",), "", 2),
        ("x:\n  # shardlint: ignore[a, b-c] why\n\n  # more\n  y: 1\n", ("a", "b-c"), "why", 5),
        ("#shardlint:ignore[a]\r\nb: 1\r\n", ("a",), "", 2),
        ("a: 1\n# shardlint: ignore[a]", ("a",), "", 2),
    ],
)
def test_what_is_ignored_and_where(text, names, reason, line):
    (ignore,) = ignores(Source("x.yaml", text))
    assert (ignore.names, ignore.reason, ignore.line) == (names, reason, line)
    assert not problems(Source("x.yaml", text))


def test_the_comment_itself_has_a_place():
    (ignore,) = ignores(Source("x.yaml", "a: 1  # shardlint: ignore[b] c \n"))
    assert (ignore.span.line, ignore.span.column, ignore.span.end_column) == (1, 7, 31)


@pytest.mark.parametrize(
    "said", ["ignore", "ignore query-heads", "ignore[]", "ignore[a", "ignored[a]", "disable=a", ""]
)
def test_what_is_not_understood_is_a_problem(said):
    source = Source("x.yaml", f"a: 1 # shardlint: {said}\n")
    assert not ignores(source)
    (problem,) = problems(source)
    assert problem.at.column == 6


def test_other_comments_are_nobodys_business():
    source = Source("x.yaml", "# see shardlint\na: 'x#shardlint: ignore'\n# noqa\n")
    assert not ignores(source)
    assert not problems(source)
