"""Numbers in words."""

from __future__ import annotations

import pytest

from shardlint.findings.words import counted, figure


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1190.4, 3, "1,190"),
        (0.012345, 3, "0.0123"),
        (64.0, 6, "64"),
        (2.5e9, 6, "2,500,000,000"),
        (999.96, 3, "1,000"),
        (0.5, 6, "0.5"),
        (0, 3, "0"),
    ],
)
def test_a_figure_has_the_digits_that_count_and_no_exponent(value: float, digits: int, text: str) -> None:
    assert figure(value, digits) == text


def test_one_is_not_many() -> None:
    assert (counted(1, "GPU"), counted(8, "GPU")) == ("1 GPU", "8 GPUs")
