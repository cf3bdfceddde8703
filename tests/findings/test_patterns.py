"""Patterns that wait for their first use."""

import re

import pytest

from shardlint.findings.patterns import Pattern, compiled_when_used


@pytest.mark.parametrize(
    "ask",
    [
        lambda pattern: pattern.search("a12b3")[0],
        lambda pattern: pattern.match("12")[0],
        lambda pattern: pattern.fullmatch("12b"),
        lambda pattern: pattern.findall("1 23"),
        lambda pattern: [found[0] for found in pattern.finditer("1 23", 1)],
        lambda pattern: pattern.sub("-", "a1b2"),
        lambda pattern: pattern.split("a1b2"),
        lambda pattern: (pattern.pattern, pattern.groups, pattern.flags),
    ],
)
def test_they_answer_as_compiled_ones_do(ask):
    assert ask(Pattern(r"\d+", re.ASCII)) == ask(re.compile(r"\d+", re.ASCII))


def test_what_is_imported_meanwhile_waits_too():
    compile_now = re.compile
    with pytest.raises(RuntimeError), compiled_when_used():
        waiting = re.compile("(")
        raise RuntimeError
    assert re.compile is compile_now
    with pytest.raises(re.error):
        waiting.search("x")
