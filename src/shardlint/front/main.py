"""The command's door: exit codes, and what goes wrong outside of the work itself.

Only `sys`, `gc` and the version are imported before it is known that there is work to do: `shardlint --version` is
asked by every hook and every CI job.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from shardlint._version import __version__

TYPE_CHECKING = False  # typing itself takes longer to import than the version takes to be told
if TYPE_CHECKING:
    from typing import TextIO

CLEAN, FOUND, FAILED = 0, 1, 2
SIGNALLED, SIGINT = 128, 2  # the sum of which shells expect where Ctrl-C has ended a program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 nothing found, 1 something, 2 could not do the job.

    Without arguments it is the program, whose process ends when it is done.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    collects = gc.isenabled()
    gc.disable()  # reading and judging leave no cycles, and looking for some takes a tenth of a run
    try:
        code = _run(words)
        flush()
    except BrokenPipeError:  # of `--help | head`
        _silence(sys.stdout, sys.__stdout__)
        return CLEAN
    except KeyboardInterrupt as by:
        return SIGNALLED + getattr(by, "signal", SIGINT)
    except OSError as failure:  # a full disk behind standard output, above all
        _silence(sys.stdout, sys.__stdout__)
        where = f"{failure.filename}: " if failure.filename else ""
        return _failed(f"{where}{failure.strerror or failure}")
    except Exception:  # the interpreter would leave with 1, which says that something was found
        sys.excepthook(*sys.exc_info())
        return FAILED
    finally:
        if collects:
            gc.enable()
        if arguments is None:
            gc.freeze()  # the process ends, and going through all that is left for cycles takes a tenth of a run
    return code


def program() -> None:
    """The program: `main`, after which the process ends at once.

    What it has in memory goes with it.  To take that apart first, object by object, costs a twentieth of a run.
    """
    code = main()
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        sys.exit(code)  # which waits for the others
    import atexit
    import os

    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def _run(words: list[str]) -> int:
    if words in (["--version"], ["-V"]):
        sys.stdout.write(f"shardlint {__version__}\n")
        return CLEAN
    from shardlint.front.commands import run, versions
    from shardlint.front.failures import CannotRun

    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its escape
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if {"--version", "-V"} & set(words) and set(words) <= {"--version", "-V", "-v", "--verbose"}:
            return versions()
        return run(words)
    except CannotRun as failure:
        return _failed(str(failure))


def _failed(why: str) -> int:
    complain(why)
    return FAILED


def complain(why: str) -> None:
    """One line on standard error; names and settings in it may hold anything."""
    from shardlint.report.plain import plain

    try:
        sys.stderr.write(f"shardlint: {plain(why)}\n")
        sys.stderr.flush()
    except OSError:  # nobody reads it; the exit code says the same
        _silence(sys.stderr, sys.__stderr__)


def _open_closed_streams() -> None:
    """Standard streams that the caller closed (`>&-`) are None; what would be written to them goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            import os

            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 it stays open to the end


def put(text: str) -> None:
    """Write to standard output. Its reader may have left (`| head`), which changes nothing of what was found."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _silence(sys.stdout, sys.__stdout__)


def flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout, sys.__stdout__)


def _silence(stream: TextIO, original: TextIO | None) -> None:
    """Point the descriptor at nothing, or the interpreter complains once more when it closes the stream."""
    import os

    if original is not None and stream is original:  # what a caller in Python put in its place is the caller's
        os.dup2(os.open(os.devnull, os.O_WRONLY), original.fileno())


if __name__ == "__main__":
    sys.exit(main())
