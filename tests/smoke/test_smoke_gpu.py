"""What only GPUs can show, as far as it can be shown without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from smoke_plans import DENSE, EXPERTS, messages, plan

from shardlint.smoke import Plan, SmokeResult, Trial, run
from shardlint.smoke.claims import expected
from shardlint.smoke.job import ON_ONE_GPU
from shardlint.smoke.records import in_a_line
from shardlint.smoke.report import headline
from shardlint.smoke.surroundings import Surroundings


def _replayed_by(of: Plan) -> set[tuple[str, int]]:
    return expected(of.on("nccl")).get("graph-replay", set())


def test_graphs_are_replayed_where_vllm_captures_all_reduces_and_only_on_gpus() -> None:
    assert _replayed_by(plan(DENSE, tp=2, dp=2)) == {("tp", rank) for rank in range(4)}
    assert _replayed_by(plan(DENSE)) == {("world", 0)}
    assert _replayed_by(plan(EXPERTS, dp=2, ep=True)) == set()
    assert "graph-replay" not in expected(plan(DENSE, tp=2).on("gloo"))


@pytest.mark.usefixtures("room")
def test_what_cannot_be_captured_is_a_claim_that_fails_and_nobody_waits() -> None:
    result = run(plan(DENSE, tp=2)._replace(graphs=True))  # though there is no GPU
    assert (result.exit_code, result.failed, result.not_reached) == (1, ("graph-replay",), ())
    told = messages(result, "graph-replay")
    assert sorted(told) == [0, 1]
    assert all(message.startswith("in bfloat16: eager is right, and cannot be captured: ") for message in told.values())


REPLAYED = """
import json, sys, torch
from shardlint.smoke.plan import Plan
from shardlint.smoke.ranks import graph_replay
from shardlint.smoke.ranks.arithmetic import of_model
from shardlint.smoke.ranks.network import Network
from shardlint.smoke.ranks.share import Share

plan = Plan.from_json(json.loads(sys.argv[1]))
net = Network(0, plan, torch.device("cpu"), lambda record: None)
net.join("gloo", f"file://{sys.argv[2]}/store", 30)

def in_turn(*works):
    "Replays some of which leave the sum as it was."
    def record(net, kind, static):
        total, turns = static.clone(), iter(works)
        return graph_replay.Recording(total, lambda: next(turns) and total.copy_(static), lambda: None)
    return record

for works in (True, True, True), (True, False, True), (False, False, False):
    print(graph_replay.replayed(Share(net, of_model(plan)), "world", in_turn(*works)))
"""


def test_a_replay_that_ignores_its_input_is_told_with_what_it_gave_instead(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "ignore", "-c", REPLAYED, json.dumps(plan(DENSE).to_json()), str(tmp_path)]
    right, second, first = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert right == ""
    assert second.startswith("eager is right, replay 2 is wrong: ")
    assert second.endswith(" elements differ, by 2 at most; it is the sum of replay 1")
    assert first.startswith("eager is right, replay 1 is wrong: ")
    assert first.endswith("; it is the sum of the recording")


def test_ranks_that_share_a_gpu_say_so_and_prove_nothing_of_nccl() -> None:
    line = headline(SmokeResult(plan(DENSE, tp=2, pp=2), backend=ON_ONE_GPU, torch="2.13.0"))
    assert line.startswith("layout (PP 2 × TP 2) on one GPU of one host, which 4 ranks share (gloo, torch 2.13.0); ")
    assert line.endswith("; not proven: NCCL, bandwidth, memory, several nodes")


@pytest.mark.usefixtures("room")
@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU to be shared")
def test_without_a_gpu_there_is_none_to_share() -> None:
    result = run(plan(DENSE, tp=2), Trial(share_gpu=True, around=Surroundings("here")))
    assert result.exit_code == 2
    assert result.could_not_run == "the ranks are to share a GPU, and torch sees none on here"


def test_an_error_of_nccl_is_told_by_its_last_words() -> None:
    several_lines = (
        "NCCL error in: NCCLUtils.cpp:94, invalid usage, NCCL version 2.27.3\n"
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
        "Last error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000\n"
    )
    assert in_a_line(RuntimeError(several_lines)) == (
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000 "
        "(NCCL error in: NCCLUtils.cpp:94, invalid usage, NCCL version 2.27.3)"
    )
    out_of_memory = "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"
    assert in_a_line(RuntimeError(out_of_memory)) == "CUDA error: out of memory"
    assert in_a_line(KeyError()) == "KeyError"
