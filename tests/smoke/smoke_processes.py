"""Which processes work in a folder."""

from __future__ import annotations

import time
from pathlib import Path


def processes_of(folder: Path) -> list[int]:
    """Processes whose command line names a folder; a zombie has no command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes()
        except OSError:  # it ended while we looked
            continue
        if str(folder).encode() in command:
            found.append(int(file.parent.name))
    return found


def none_left_within(folder: Path, seconds: float) -> bool:
    """Whether the processes that work in a folder are gone before the time is over."""
    end = time.monotonic() + seconds
    while processes_of(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
