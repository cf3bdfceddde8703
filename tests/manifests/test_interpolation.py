"""Compose's text: replaced and split, with the place of every character kept."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.findings import Located, Unknown
from shardlint.manifests._interpolation import interpolate, split
from shardlint.manifests._splices import word_of
from shardlint.text.source import MASK, Fragment, Source

VARIABLES = {"SET": Located("value"), "EMPTY": Located(""), "OPEN": Unknown("not told")}
PIECES = [*"ab \"'\\$A{}:-+?_\n", "${SET", "${EMPTY", "${OPEN", "$$", ":-"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def fragment(text: str) -> Fragment:
    return Fragment.whole(Source("compose.yaml", text))


@given(TEXT)
def test_any_text_is_read_and_its_own_characters_keep_their_places(text):
    got = interpolate(fragment(text), {"OPEN": Unknown("not told")})
    for character, place in zip(got.text, got.offsets, strict=False):
        assert character in (MASK, text[place])
    assert list(got.offsets) == sorted(got.offsets) and len(got.offsets) == len(got.text) + 1


@given(TEXT)
def test_replaced_text_stands_within_the_text(text):
    got = interpolate(fragment(text), VARIABLES)
    assert all(0 <= place <= len(text) for place in got.offsets)
    assert list(got.offsets) == sorted(got.offsets)


@given(st.text(alphabet="ab \"'\\\n-=", max_size=40))
def test_words_are_those_of_a_shell(text):
    try:
        wanted = shlex.split(text)
    except ValueError:  # a quote or an escape that is not closed: taken as far as it goes
        split(fragment(text))
        return
    if "\\\n" not in text:  # the shell joins lines there
        assert [word.text for word in split(fragment(text))] == wanted


@given(st.lists(st.text(alphabet="abc-=/", min_size=1, max_size=8), max_size=6))
def test_the_place_of_a_word_cuts_it(words):
    text = "  ".join(words)
    for word, found in zip(words, split(fragment(text)), strict=True):
        located = word_of(found)
        assert text[located.span.column - 1 : located.span.end_column - 1] == word == located.value


def test_splitting_stops_where_compose_stops():
    assert [word.text for word in split(fragment("a 'b;c' d; e"))] == ["a", "b;c", "d"]


@pytest.mark.parametrize("text", ["${" * 50_000, "${A:-" * 20_000 + "}" * 20_000, "$" * 100_001, "${A:-x}" * 20_000])
def test_hostile_text_is_read_in_linear_time(text):
    start = time.process_time()
    split(interpolate(fragment(text), {}))
    assert time.process_time() - start < 5
