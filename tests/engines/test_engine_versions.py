from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.engines import Version

ASCENDING = ["0.5.5", "0.6.6", "0.6.6.post1", "0.7.3", "0.9.0", "0.9.0.1", "0.10.0rc1", "0.10.0rc2", "0.10.0", "0.10.1", "0.33.0", "1.0.0"]  # fmt: skip


def version(text: str) -> Version:
    found = Version.parse(text)
    assert found is not None
    return found


def test_releases_are_in_order() -> None:
    assert sorted(map(version, reversed(ASCENDING))) == list(map(version, ASCENDING))


@pytest.mark.parametrize(
    "text", ["", "latest", "8", "0.8.x", "v", "0.8.5-cu128", "nightly", "0.7.3.self.post1", "1." + "9" * 40]
)
def test_other_texts_are_no_version(text: str) -> None:
    assert Version.parse(text) is None


def test_v_and_trailing_zeros_and_builds_do_not_count() -> None:
    assert version("v0.33.0") == version("0.33") == version("0.33.0+cu129")
    assert str(version("v0.8.5.post1")) == "0.8.5.post1"


def test_a_development_build_comes_before_its_release() -> None:
    assert version("0.33.0.dev12") < version("0.33.0rc1") < version("0.33.0") < version("0.33.1.dev1")


@given(st.lists(st.tuples(*[st.integers(0, 60)] * 3), min_size=2, max_size=6))
def test_the_order_is_that_of_the_numbers(releases: list[tuple[int, int, int]]) -> None:
    parsed = [version(".".join(map(str, release))) for release in releases]
    assert [a < b for a, b in itertools.pairwise(parsed)] == [a < b for a, b in itertools.pairwise(releases)]


@given(st.text(max_size=20))
def test_any_text_is_a_version_or_none(text: str) -> None:
    found = Version.parse(text)
    assert found is None or Version.parse(str(found)) == found
