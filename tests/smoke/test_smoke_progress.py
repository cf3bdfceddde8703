"""Whose fault it is that a run broke, told from the records alone."""

from __future__ import annotations

import pytest
from smoke_plans import DENSE, plan

from shardlint.smoke.progress import Progress
from shardlint.smoke.records import Checked, Doing, Ended, Raised, Record, Result, Started, Stopped
from shardlint.smoke.result import Claim

STALLED = "when nothing had moved for 10 s"


def _after(*records: Record, **sizes: int) -> Progress:
    progress = Progress(plan(DENSE, **sizes))
    for rank in progress.plan.ranks:
        progress.take(Started(rank, 100 + rank))
    for record in records:
        progress.take(record)
    return progress


def _faults(progress: Progress, reason: str = STALLED, last_words: dict[int, str] | None = None) -> dict[int, str]:
    return {claim.rank: claim.message for claim in progress.end_claims(reason, last_words or {}) if not claim.ok}


def _waits(rank: int, awaited: tuple[int, ...], operation: str = "all-reduce", kind: str = "tp") -> Doing:
    return Doing(rank, "split-mlp", operation, kind, awaited)


def test_the_rank_that_is_in_no_collective_keeps_the_others_waiting() -> None:
    progress = _after(_waits(0, (0, 1)), Doing(1, "split-mlp"), _waits(2, (0,), "receive", "pp"), tp=2, pp=2)
    progress.take(_waits(3, (1,), "receive", "pp"))
    assert _faults(progress) == {
        1: "rank 1 (process 101) was in split-mlp, in no collective, while ranks [0, 3] waited for it, " + STALLED
    }


def test_where_all_wait_for_each_other_all_are_named_with_what_they_are_in() -> None:
    progress = _after(_waits(0, (0, 1)), _waits(1, (0, 1), "all-gather"), tp=2)
    assert _faults(progress) == {
        0: f"rank 0 (process 100) was in split-mlp, in all-reduce of tp with ranks [0, 1], {STALLED}",
        1: f"rank 1 (process 101) was in split-mlp, in all-gather of tp with ranks [0, 1], {STALLED}",
    }


def test_a_rank_that_never_spoke_had_not_begun() -> None:
    assert _faults(_after(_waits(0, (0, 1)), tp=2)) == {1: f"rank 1 (process 101) had not begun {STALLED}"}


@pytest.mark.parametrize(
    "words",
    [
        "Connection closed by peer [127.0.0.1]:5",
        "Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: Connection refused",
    ],
)
def test_a_killed_rank_is_the_cause_of_what_its_peers_raise(words: str) -> None:
    progress = _after(
        Doing(0, "split-mlp"),
        Doing(1, "split-mlp"),
        Raised(0, f"RuntimeError: {words}"),
        Ended(0, 1),
        Ended(1, -9),
        tp=2,
    )
    assert _faults(progress) == {1: "rank 1 (process 101) was ended by SIGKILL in split-mlp"}


def test_an_aborted_rank_is_quoted() -> None:
    progress = _after(Doing(1, "split-mlp"), Ended(1, -6), tp=2)
    assert _faults(progress, last_words={1: "terminate called"}) == {
        1: "rank 1 (process 101) was ended by SIGABRT in split-mlp: terminate called"
    }


def test_where_all_blame_a_peer_the_first_to_end_is_named() -> None:
    closed = "RuntimeError: Connection closed by peer"
    progress = _after(Raised(0, closed), Raised(1, closed), Ended(1, 1), Ended(0, 1), tp=2)
    assert list(_faults(progress)) == [1]


def test_ranks_that_came_to_their_end_are_claimed_to_have() -> None:
    progress = _after(Ended(0, 0), Ended(1, 0), tp=2)
    assert list(progress.end_claims("", {})) == [Claim("ranks", "world", (0, 1), rank, True) for rank in (0, 1)]


def test_silence_is_borne_longer_only_where_a_step_of_start_up_is_at_work() -> None:
    meets = [Doing(rank, "start-up", "meeting", "world", (0, 1)) for rank in (0, 1)]
    assert _after(*meets, tp=2).patience(10) == 30
    assert _after(*meets, tp=2).patience(40) == 40
    assert _after(meets[0], Doing(1, "start-up", "opening its GPU"), tp=2).patience(10) == 30
    assert _after(meets[0], Doing(1, "start-up"), tp=2).patience(10) == 10, "one keeps the other waiting"
    assert _after(meets[0], tp=2).patience(10) == 10, "one says nothing at all"
    assert _after(*meets, Stopped(1, 19), tp=2).patience(10) == 10, "one is frozen"
    assert _after(_waits(0, (0, 1)), _waits(1, (0, 1)), tp=2).patience(10) == 10


def test_a_rank_that_opens_its_gpu_waits_for_nobody() -> None:
    progress = _after(Doing(0, "start-up", "meeting", "world", (0, 1)), Doing(1, "start-up", "opening its GPU"), tp=2)
    assert _faults(progress) == {
        1: f"rank 1 (process 101) was in start-up, in opening its GPU, while ranks [0] waited for it, {STALLED}"
    }


def test_twins_with_other_tensors_are_named() -> None:
    progress = _after(Result(0, "a"), Result(1, "b"), Result(2, "a"), Result(3, "c"), tp=2, dp=2)
    assert list(progress.replica_claims()) == [
        Claim("replicas", "twins", (0, 2), 0, True),
        Claim("replicas", "twins", (1, 3), 1, False, "ranks [3] end with other tensors than rank 1"),
    ]


def test_twins_that_did_not_all_end_are_not_judged() -> None:
    assert not list(_after(Result(0, "a"), dp=2).replica_claims())


def test_a_claim_names_the_group_that_the_plan_gives_the_rank() -> None:
    progress = _after(Checked(3, "split-mlp", "tp", False, "wrong"), tp=2, pp=2)
    assert progress.claims == [Claim("split-mlp", "tp", (2, 3), 3, False, "wrong")]
