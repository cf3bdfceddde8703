"""The process that imports torch and forks the ranks of this node, as its parent sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shardlint.smoke.job import Job
from shardlint.smoke.records import Record, parse

GOODBYE_SECONDS = 2.0
OUTPUT = "output"
CHUNK_BYTES = 65536

# The package's own folder goes last on the path: it only matters where the parent's path was made by hand.
START = """
import os, sys
sys.path.append(sys.argv[1])
from shardlint.smoke.child import main
main(int(sys.argv[2]), sys.argv[3])
os._exit(0)  # what torch tidies up when an interpreter ends takes a second, and somebody waits
"""


class RanksProcess:
    """Standard input tells it what to do, and to end; a pipe brings the records of all of its ranks."""

    def __init__(self, folder: Path, listening: int = -1) -> None:
        self.folder = folder
        self.gone = False
        """No record will come any more."""
        self._rest = b""
        package = Path(__file__).resolve().parents[2]
        self._reports, report = os.pipe()
        with (folder / OUTPUT).open("wb") as output:
            # -P: a folder called torch where the user stands is not the library; -W: its warnings are not the user's
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-c", START, package, str(report), folder],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(report, listening) if listening >= 0 else (report,),
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        os.close(report)

    def fileno(self) -> int:
        return self._reports

    def start(self, job: Job) -> None:
        """Have the ranks started."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; that is seen when its reports end
            self._process.stdin.write(json.dumps(job.to_json()).encode() + b"\n")
            self._process.stdin.flush()

    def listen(self) -> Iterator[Record]:
        """What has come through the pipe."""
        data = os.read(self._reports, CHUNK_BYTES)
        self.gone = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from map(parse, lines)

    def last_words(self, rank: int | None = None) -> str:
        """The last line that a rank, or the process itself, wrote to its standard error; empty where it wrote none."""
        path = self.folder / (OUTPUT if rank is None else f"rank-{rank}")
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def end(self) -> None:
        """Closing standard input asks the process to end its ranks; whatever does not follow is killed."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GOODBYE_SECONDS)
        if self._process.returncode != 0:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._reports)  # not before: the process still reports how its ranks end


@contextmanager
def ranks_process(folder: Path, listening: int = -1) -> Iterator[RanksProcess]:
    """The process, and the certainty that neither it nor a rank of it is left afterwards."""
    process = RanksProcess(folder, listening)
    try:
        yield process
    finally:
        process.end()
