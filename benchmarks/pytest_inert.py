"""What the pytest plugin costs where nobody asks for it: what it imports, and CPU time. See BUDGET.

    python benchmarks/pytest_inert.py [--rounds N]

Two runs of pytest on one empty test, in turn, with the plugin and with `-p no:shardlint`, and the import of the
plugin's module alone, inside a process that has pytest. Exits with 1 where it is over its budget. Needs
tests/requirements.txt.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import BARE, environment, least

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nothing.py")
IMPORT = """\
import sys, time
import pytest
before, start = set(sys.modules), time.process_time()
import shardlint.front.pytest_plugin
seconds = time.process_time() - start
print(seconds, *sorted(set(sys.modules) - before))
"""

BUDGET = {"modules": 4, "import": 0.5, "run": 1.1}
"""Modules that are new in the process; the import over bare Python; the run over one without the plugin."""


def imported(folder: Path, rounds: int) -> tuple[float, list[str]]:
    """The median of the import's CPU seconds, and the modules that it brings."""
    command = (sys.executable, "-c", IMPORT)
    done = [
        subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=True).stdout.split()
        for _ in range(rounds + 1)  # the first compiles bytecode
    ]
    return statistics.median(float(words[0]) for words in done[1:]), done[0][1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        seconds, modules = imported(folder, options.rounds)
        without = (*PYTEST[:-1], "-p", "no:shardlint", PYTEST[-1])
        bare, inert, absent = least((BARE, PYTEST, without), folder, options.rounds)
    ratios = {"modules": float(len(modules)), "import": seconds / bare, "run": inert / absent}
    print(f"modules  {len(modules)} (at most {BUDGET['modules']}): {', '.join(modules)}")
    print(f"import   {seconds * 1000:.2f} ms CPU = {ratios['import']:.3f} x bare Python (at most {BUDGET['import']:g})")
    print(
        f"run      {inert * 1000:.0f} ms CPU = {ratios['run']:.3f} x the {absent * 1000:.0f} ms without the plugin"
        f" (at most {BUDGET['run']:g})"
    )
    return int(any(ratios[what] > limit for what, limit in BUDGET.items()))


if __name__ == "__main__":
    sys.exit(main())
