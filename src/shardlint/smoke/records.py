"""What the processes of a run tell their parent: one JSON line each, through one pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import NamedTuple

MOST_MESSAGE = 250  # characters: a line shorter than PIPE_BUF (512 bytes at least) never mixes with another's


class Ready(NamedTuple):
    """torch is imported on a node, which waits to be told what to do."""

    torch: str
    gpus: int
    nccl: str = ""


class Loaded(NamedTuple):
    """The devices are chosen, and the ranks are about to start."""

    torch: str
    backend: str


class Cannot(NamedTuple):
    """The run is over before it began."""

    reason: str


class Started(NamedTuple):
    """A rank has a process."""

    rank: int
    process: int


class Doing(NamedTuple):
    """A rank enters a collective and waits for others (or, where none are awaited, something else that takes its time),
    or (no operation) has left it."""

    rank: int
    check: str
    operation: str = ""
    kind: str = ""
    awaited: tuple[int, ...] = ()


class Checked(NamedTuple):
    """A rank has judged one claim over one of its groups."""

    rank: int
    claim: str
    kind: str
    ok: bool
    message: str = ""


class Result(NamedTuple):
    """A digest of what a rank ended with, to be compared with that of its twins."""

    rank: int
    digest: str


class Uses(NamedTuple):
    """A rank has a GPU, known by its serial number."""

    rank: int
    gpu: str


class Timed(NamedTuple):
    """A rank has timed the exchange of that number in one of its groups, in microseconds."""

    rank: int
    exchange: int
    mode: str
    bytes: int
    median_us: float
    p99_us: float


class Stopped(NamedTuple):
    """A rank's process was stopped by a signal and stands still."""

    rank: int
    signal: int


class Raised(NamedTuple):
    """An exception ends a rank."""

    rank: int
    error: str


class Ended(NamedTuple):
    """A rank's process is gone: its exit code, negative for a signal."""

    rank: int
    code: int


Record = Ready | Loaded | Cannot | Started | Doing | Checked | Result | Uses | Timed | Stopped | Raised | Ended

KINDS: dict[str, Callable[..., Record]] = {
    kind.__name__: kind
    for kind in (Ready, Loaded, Cannot, Started, Doing, Checked, Result, Uses, Timed, Stopped, Raised, Ended)
}


def write(descriptor: int, record: Record) -> None:
    """Write one record in one piece."""
    fields = [field[:MOST_MESSAGE] if isinstance(field, str) else field for field in record]
    line = json.dumps([type(record).__name__, *fields], ensure_ascii=False).encode() + b"\n"
    os.write(descriptor, line)


def in_a_line(failure: BaseException) -> str:
    """The first line of what an exception says; before it NCCL's last error, which torch puts at the end."""
    texts = str(failure).partition("Last error:")
    head, _label, cause = (next(iter(text.strip().splitlines()), "") for text in texts)
    return f"{cause} ({head})" if cause else head or type(failure).__name__


def parse(line: bytes) -> Record:
    """The record of one line. Raises ValueError for what is none."""
    name, *fields = json.loads(line)
    return KINDS[name](*(tuple(field) if isinstance(field, list) else field for field in fields))
