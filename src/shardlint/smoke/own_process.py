"""A Python process of our own: told what to do in JSON lines on standard input, it answers in lines through a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

OUTPUT = "output"
CHUNK_BYTES = 65536

# The package's own folder goes last on the path: it only matters where the parent's path was made by hand.
START = """
import os, sys
from importlib import import_module
sys.path.append(sys.argv[1])
import_module(sys.argv[2]).main(int(sys.argv[3]), sys.argv[4])
os._exit(0)  # what libraries tidy up when an interpreter ends takes a second, and somebody waits
"""


def refusal(what: str, failure: OSError) -> str:
    """A process that could not be started, mostly for a limit of processes or memory (ulimit -u, pids.max)."""
    return f"this host refused to start {what}: {failure.strerror or failure}"


class OwnProcess:
    """Runs `main(report, folder)` of a module, `report` being the descriptor for its lines, while a context is open."""

    goodbye_seconds = 2.0
    """How long it may take to end once standard input is closed; then it is killed, and what it has started too."""

    def __init__(self, module: str, folder: Path, inherited: tuple[int, ...] = ()) -> None:
        self.folder = folder
        self.gone = False
        """No line will come any more."""
        self._rest = b""
        package = Path(__file__).resolve().parents[2]
        self._reports, report = os.pipe()
        with (folder / OUTPUT).open("wb") as output:
            # -P: a folder called torch where the user stands is not the library; -W: its warnings are not the user's
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-c", START, package, module, str(report), folder],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(report, *inherited),
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        os.close(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()

    def fileno(self) -> int:
        return self._reports

    @property
    def stopped(self) -> int | None:
        """Its number where a signal has stopped it, and no end of what it has started is heard; only Linux tells."""
        if sys.platform != "linux":
            return None
        stopped = os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        return stopped.si_pid if stopped else None

    def say(self, data: dict[str, Any]) -> None:
        """Hand over one line of JSON."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; that is seen when its lines end
            self._process.stdin.write(json.dumps(data).encode() + b"\n")
            self._process.stdin.flush()

    def lines(self) -> Iterator[bytes]:
        """What has come through the pipe."""
        data = os.read(self._reports, CHUNK_BYTES)
        self.gone = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from lines

    def last_line(self, file: str = OUTPUT) -> str:
        """The last line of its output, or of another file of its folder; empty where there is none."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def end(self) -> None:
        """Closing standard input asks the process to end; whatever does not follow is killed."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self.goodbye_seconds)
        if self._process.returncode != 0:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._reports)  # not before: the process still reports how things end
