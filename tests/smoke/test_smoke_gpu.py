"""What only GPUs can show, as far as it can be shown without one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from smoke_plans import DENSE, EXPERTS, messages, plan

from shardlint.front.options import parse
from shardlint.smoke import Claim, Plan, SmokeResult, Trial, run
from shardlint.smoke.claims import expected
from shardlint.smoke.job import ON_ONE_GPU
from shardlint.smoke.observations import Observation
from shardlint.smoke.records import in_a_line
from shardlint.smoke.report import headline, json_data
from shardlint.smoke.surroundings import Surroundings

SCRIPT = Path(__file__).parents[2] / "scripts" / "try_one_gpu.py"
NO_GPU = pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU")


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


@NO_GPU
@pytest.mark.usefixtures("room")
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


@NO_GPU
def test_the_script_for_one_gpu_says_that_there_is_none(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, SCRIPT, tmp_path / "reports"], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (2, "")
    assert said.stdout.startswith("nothing was tried: torch ")
    assert said.stdout.endswith(" sees no GPU here\n")
    assert not (tmp_path / "reports").exists()


@pytest.fixture
def script() -> Any:
    spec = importlib.util.spec_from_file_location("try_one_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(of: Plan, backend: str, *observations: Observation, **wrong: str) -> dict[str, Any]:
    """The JSON of a run in which every claim holds but for those that have a message here."""
    claims = tuple(
        Claim(name, kind, of.group_of(kind, rank), rank, name not in wrong, wrong.get(name, ""))
        for name, judges in expected(of).items()
        for kind, rank in sorted(judges)
    )
    result = SmokeResult(of, claims, "", backend, "2.13.0", observations=observations)
    found: dict[str, Any] = json.loads(json.dumps(json_data(result)))
    return found


def test_the_script_for_one_gpu_asks_for_runs_that_shardlint_takes(script: Any, tmp_path: Path) -> None:
    for part in script.parts(script.Gpu("2.13.0", "NVIDIA H200", 150 * 10**9), tmp_path):
        for command in part.commands:
            assert parse(command).command == "smoke"
    assert "--kv-cache-memory-bytes 300000000000" in (tmp_path / "beyond-memory.sh").read_text()


def test_the_script_for_one_gpu_wants_memory_and_the_graph_from_a_rank_alone(script: Any) -> None:
    of = plan(DENSE)._replace(allocation=((2**30, 2**30),)).on("nccl")
    assert script.wrong_alone([_report(of, "nccl")]) == ""
    assert script.wrong_alone([_report(of, "gloo")]) == "it ran with gloo, not with nccl"
    assert script.wrong_alone([_report(plan(DENSE).on("nccl"), "nccl")]) == "not proven: memory"
    fault = "eager is right, replay 2 is wrong"
    assert script.wrong_alone([_report(of, "nccl", **{"graph-replay": fault})]) == f"exit code 1: {fault}"


def test_the_script_for_one_gpu_wants_every_claim_of_ranks_that_share_it(script: Any) -> None:
    of = plan(EXPERTS, tp=2, pp=2, dp=2, ep=True)
    assert script.wrong_shared([_report(of, ON_ONE_GPU)]) == ""
    assert script.wrong_shared([_report(of, "nccl")]) == "it ran with nccl, not with gloo-cuda"
    assert script.wrong_shared([_report(plan(DENSE, tp=2, pp=2, dp=2), ON_ONE_GPU)]).startswith("not proven: experts")


def test_the_script_for_one_gpu_wants_both_refusals_of_two_ranks_on_it(script: Any) -> None:
    of, seen = plan(DENSE, tp=2).on("nccl"), Observation("same-gpu", "error", "", "ranks [0, 1] are all on GPU-1")
    refused = _report(of, "nccl", seen, ranks="DistBackendError: Duplicate GPU detected : rank 1 and rank 0")
    assert script.wrong_pair([refused, refused]) == ""
    assert script.wrong_pair([refused, _report(of, "nccl")]).startswith("exit code 0: layout (TP 2) on 2 GPUs of ")
    unseen = _report(of, "nccl", ranks="DistBackendError: Duplicate GPU detected")
    assert script.wrong_pair([unseen]) == "no observation same-gpu"
    assert script.wrong_pair([_report(of, "nccl", seen)]).startswith("NCCL's refusal is not quoted: ranks [0, 1] ")


def test_the_script_for_one_gpu_wants_memory_alone_to_fail_beyond_it(script: Any) -> None:
    of = plan(DENSE)._replace(allocation=((2**30, 2**40),)).on("nccl")
    free = "no room for 1024.0 GiB of KV cache on cuda:0, 100.0 of 140.0 GiB are free and 1.0 are this rank's: CUDA out of memory"
    assert script.wrong_memory([_report(of, "nccl", memory=free)]) == ""
    assert script.wrong_memory([_report(of, "nccl", memory="no room")]) == "what is free is not said: no room"
    assert script.wrong_memory([_report(of, "nccl")]).startswith("exit code 0, failed []: ")
