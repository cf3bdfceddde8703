"""A run leaves nothing for the garbage collector, which therefore rests meanwhile."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"

COUNTING = """\
import gc, io, sys
from shardlint.front.main import main
out, sys.stdout = sys.stdout, io.StringIO()
main(sys.argv[1:])  # what is imported and cached on first use
gc.collect()
gc.disable()
main(sys.argv[1:])
print(gc.collect(), gc.isenabled(), file=out)
gc.enable()
main(sys.argv[1:])
print(gc.isenabled(), file=out)
"""


def test_reading_and_judging_leave_no_cycles_and_the_collector_as_it_was() -> None:
    run = subprocess.run([sys.executable, "-c", COUNTING, str(EXAMPLES)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "False", "True"], run.stderr
