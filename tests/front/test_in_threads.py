"""Work in threads: its order, its failures, and that what is stuck does not hold up the caller."""

import time
from threading import Event

import pytest

from shardlint.front.in_threads import in_threads


def test_results_stand_in_the_order_of_the_items() -> None:
    def work(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return number * number

    assert in_threads(work, range(50), patience_seconds=5) == [number * number for number in range(50)]


def test_nothing_to_do() -> None:
    assert in_threads(str, [], patience_seconds=5) == []


def test_the_first_failure_ends_it() -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        time.sleep(0.01)
        raise KeyError(number)

    with pytest.raises(KeyError):
        in_threads(work, range(1000), patience_seconds=5)
    assert len(begun) < 100


def test_what_is_stuck_is_left_behind() -> None:
    stuck = Event()
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        in_threads(lambda _: stuck.wait(20), [1, 2], patience_seconds=0.1)
    assert time.monotonic() - begun < 5
    stuck.set()
