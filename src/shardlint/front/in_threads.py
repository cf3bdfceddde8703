"""Work that may hang, done where it cannot hold up the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

MOST_THREADS = 8


def in_threads(work: Callable[[T], U], items: Sequence[T], *, patience_seconds: float) -> list[U]:
    """`work` of every item, in their order.

    Raises TimeoutError where no item gets done for `patience_seconds`, and the first exception of `work`.  What is
    stuck then stays behind in daemon threads: the resolution of a name has no time limit, and a reply may come byte
    by byte for ever.
    """
    waiting = deque(enumerate(items))
    done: SimpleQueue[tuple[int, U] | Exception] = SimpleQueue()

    def worker() -> None:
        while waiting:
            try:
                at, item = waiting.popleft()
                done.put((at, work(item)))
            except Exception as failure:  # handed to the thread that waits, which raises it
                done.put(failure)

    for _ in range(min(MOST_THREADS, len(items))):
        Thread(target=worker, daemon=True).start()
    try:
        results = dict(_next(done, patience_seconds) for _ in items)
    finally:
        waiting.clear()
    return [results[at] for at in range(len(items))]


def _next(done: SimpleQueue[tuple[int, U] | Exception], patience_seconds: float) -> tuple[int, U]:
    try:
        result = done.get(timeout=patience_seconds)
    except Empty:
        raise TimeoutError from None
    if isinstance(result, Exception):
        raise result
    return result
