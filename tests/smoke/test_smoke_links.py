"""How the exchanges of a step are timed by real processes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from smoke_plans import EXPERTS, plan

from shardlint.smoke import Trial, run
from shardlint.smoke.exchanges import Exchange, by_exchange

OPERATIONS = (
    ("all-reduce", "tp"),
    ("all-gather", "tp"),
    ("send", "pp"),
    ("all-gather", "ep"),
    ("reduce-scatter", "ep"),
)
SENT = tuple(Exchange(operation, kind, "layer", "decode", 1, 6, 8192) for operation, kind in OPERATIONS)


@pytest.mark.usefixtures("room")
def test_every_group_is_timed_by_itself_and_beside_all_others_of_its_class() -> None:
    result = run(plan(EXPERTS, tp=2, pp=2, dp=2, ep=True), Trial(exchanges=SENT))
    assert result.exit_code == 0
    found = by_exchange(result.timings)
    assert set(found) == {(exchange, mode) for exchange in SENT for mode in ("alone", "together")}
    for (exchange, _mode), timings in found.items():
        assert sorted(timing.group for timing in timings) == sorted(result.plan.groups[exchange.kind])
        assert all(0 < timing.median_us <= timing.p99_us for timing in timings)


@pytest.mark.usefixtures("room")
def test_the_only_group_of_a_class_is_timed_once() -> None:
    result = run(plan(EXPERTS, tp=2), Trial(exchanges=SENT[:1]))
    assert [(timing.group, timing.mode) for timing in result.timings] == [((0, 1), "alone")]


REPEATED = """
import time, torch
from shardlint.smoke.ranks import links
links.ANNOUNCED_SECONDS = 0.25
print(len(links.for_a_moment(lambda: time.sleep(0.1), 50, torch.device("cpu"))))
print(len(links.for_a_moment(lambda: None, 50, torch.device("cpu"))))
"""


def test_a_rank_with_slow_repetitions_speaks_between_them() -> None:
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", REPEATED], capture_output=True, text=True, check=True)
    slow, quick = map(int, said.stdout.split())
    assert (slow in (1, 2, 3), quick) == (True, 50)
