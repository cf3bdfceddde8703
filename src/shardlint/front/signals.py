"""Signals that end a program which has processes and files to put away first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Of Ctrl-C, of `timeout`, CI and Kubernetes, of a terminal that is closed."""


class Signalled(KeyboardInterrupt):
    """One of ENDING has come; what is open is closed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


@contextmanager
def raised() -> Iterator[None]:
    """Have the first of ENDING raise Signalled, and what follows it do nothing: the way out is taken already.

    Those that the caller ignores (nohup) stay ignored, and only the main thread of a program is told of any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: handler for number in ENDING if (handler := signal.getsignal(number)) is not signal.SIG_IGN}

    def end(number: int, _frame: FrameType | None) -> None:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise Signalled(number)

    for number in before:
        signal.signal(number, end)
    is_ending = False
    try:
        yield
    except Signalled:  # the program ends, and is not to be disturbed
        is_ending = True
        raise
    finally:
        for number, handler in before.items() if not is_ending else ():
            signal.signal(number, handler)
