"""The lines that cross the pipe."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.smoke.records import MOST_MESSAGE, Checked, Doing, Ended, Raised, Record, parse, write

SMALLEST_PIPE_BUF = 512  # what POSIX grants

records = st.one_of(
    st.builds(Ended, st.integers(0, 64), st.integers(-64, 255)),
    st.builds(Doing, st.integers(0, 64), st.just("membership"), st.just("all-reduce"), st.just("tp")),
    st.builds(Checked, st.integers(0, 64), st.just("split-mlp"), st.just("tp"), st.booleans(), st.text(max_size=40)),
)


def _through_a_pipe(record: Record) -> bytes:
    reading, writing = os.pipe()
    write(writing, record)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


@given(records)
def test_a_record_arrives_as_it_was_written(record: Record) -> None:
    line = _through_a_pipe(record)
    assert line.count(b"\n") == 1
    assert parse(line) == record


def test_a_rank_waits_for_ranks() -> None:
    record = Doing(3, "membership", "all-gather", "tp", (2, 3))
    assert parse(_through_a_pipe(record)) == record


def test_long_words_are_cut_so_that_the_lines_of_two_ranks_do_not_mix() -> None:
    line = _through_a_pipe(Raised(1, "x" * 10_000))
    assert parse(line) == Raised(1, "x" * MOST_MESSAGE)
    assert len(line) < SMALLEST_PIPE_BUF


def test_a_line_that_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        parse(b"Segmentation fault\n")
