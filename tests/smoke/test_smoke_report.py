"""What is printed, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable

from smoke_plans import DENSE, EXPERTS, plan

from shardlint.smoke import Claim, Plan, SmokeResult
from shardlint.smoke.observations import Observation
from shardlint.smoke.report import headline, json_data, text
from shardlint.smoke.result import expected
from shardlint.smoke.surroundings import Surroundings
from shardlint.smoke.trial import Host

PAIR = plan(DENSE, tp=2)


def _all_held(of: Plan) -> list[Claim]:
    return [
        Claim(name, kind, of.twins[0] if kind == "twins" else of.group_of(kind, rank), rank, True)
        for name, judges in expected(of).items()
        for kind, rank in sorted(judges)
    ]


def _result(claims: Iterable[Claim], of: Plan = PAIR, backend: str = "gloo") -> SmokeResult:
    return SmokeResult(of, tuple(claims), "", backend, "2.13.0", 1.5)


def _with_a_wrong_shard() -> SmokeResult:
    message = "9 of 1024 elements differ, by 3 at most: rank 1 added nothing"
    return _result(
        claim._replace(ok=False, message=message) if claim.name == "split-mlp" else claim for claim in _all_held(PAIR)
    )


def test_what_was_seen_of_hosts_and_fails_a_run_is_in_its_first_line() -> None:
    seen = Observation("crosses-nodes", "error", "", "tp [0,1]: planned inside of a node, observed over nodes 0 and 1")
    result = _result(_all_held(PAIR))._replace(observations=(seen, seen._replace(host="other")))
    assert result.exit_code == 1
    assert "; FAILED: crosses-nodes; not proven: " in headline(result)


def test_a_run_that_held() -> None:
    result = _result(_all_held(PAIR))
    assert result.exit_code == 0
    assert text(result, "Deployment/llama") == (
        "Deployment/llama (TP 2) on CPU (2 processes of one host, gloo, torch 2.13.0); "
        "proven: membership, split-mlp, attention, embedding, output-head, repetition, all-layers, ranks; "
        "not proven: NCCL, bandwidth, memory, several nodes\n"
        "scale: hidden_size 4096 as 128, intermediate_size 14336 as 128, vocab_size 128256 as 512; "
        "32 query heads, 8 KV heads of 8; all 6 layers; 8 tokens; "
        "whole numbers, tolerance 0, then bfloat16, tolerance 0.03\n"
        "ok    membership, tp [0,1]: every group holds the planned ranks\n"
        "ok    membership, world [0,1]: every group holds the planned ranks\n"
        "ok    split-mlp, tp [0,1]: "
        "a column-parallel, then row-parallel MLP with one all-reduce equals the unsplit product\n"
        "ok    attention, tp [0,1]: query heads with the KV heads of their ranks, and one all-reduce, "
        "equal all heads on one device\n"
        "ok    embedding, tp [0,1]: each token is looked up by the one rank that has its row\n"
        "ok    output-head, tp [0,1]: the gathered logits without their padding equal those of the whole vocabulary\n"
        "ok    repetition, tp [0,1]: the same sum has the same bits every time\n"
        "ok    all-layers, world [0,1]: the last stage ends as the unsplit model does\n"
        "ok    ranks, world [0,1]: every rank comes to its end\n"
        "9 claims held in 1.5 s\n"
    )


def test_what_several_ranks_see_alike_is_said_once() -> None:
    result = _with_a_wrong_shard()
    assert result.exit_code == 1
    assert (
        "; proven: membership, attention, embedding, output-head, repetition, all-layers, ranks; FAILED: split-mlp; not proven:"
        in headline(result)
    )
    wrong = [line for line in text(result).splitlines() if line.startswith("FAIL")]
    assert wrong == [
        "FAIL  split-mlp, tp [0,1]: 9 of 1024 elements differ, by 3 at most: rank 1 added nothing (seen by rank 0, 1)"
    ]
    assert text(result).endswith("of 9 claims 1 failed in 1.5 s\n")


def test_what_is_seen_alike_of_several_hosts_is_said_once() -> None:
    seen = [Observation("open-files", "warning", host, "few", "more") for host in ("a", "b")]
    seen.append(Observation("leftover", "note", "", "of none"))
    lines = text(_result(_all_held(PAIR))._replace(observations=tuple(seen))).splitlines()
    assert lines[1:3] == ["warn  open-files, a, b: few - more", "note  leftover: of none"]


def test_a_claim_that_some_rank_did_not_judge_is_not_proven() -> None:
    result = _result(claim for claim in _all_held(PAIR) if (claim.name, claim.rank) != ("all-layers", 1))
    assert result.exit_code == 1
    assert "; not reached: all-layers; " in headline(result)
    assert "----  all-layers, world: not reached by rank 1\nok    ranks, " in text(result)
    assert text(result).endswith("of 9 claims 1 not reached in 1.5 s\n")


def test_nothing_said_is_nothing_proven() -> None:
    result = _result([])
    assert result.exit_code == 1
    assert "; proven: nothing; not reached: membership, split-mlp, attention, " in headline(result)
    assert "----  split-mlp, tp: not reached\n" in text(result)


def test_a_run_on_gpus_says_so() -> None:
    line = headline(_result(_all_held(PAIR), backend="nccl"))
    assert line.startswith("layout (TP 2) on 2 GPUs of one host (NCCL, torch 2.13.0); ")
    assert line.endswith("; not proven: bandwidth, memory, several nodes")


def test_a_run_that_could_not_be() -> None:
    result = SmokeResult(PAIR, could_not_run="torch is not installed")
    assert result.exit_code == 2
    assert text(result, "x") == "x (TP 2) was not tried: torch is not installed\n"
    assert json_data(result)["could_not_run"] == "torch is not installed"


def test_a_look_at_hosts_says_where_at_what_and_that_there_are_no_gpus() -> None:
    hosts = [Host(0, Surroundings("a", machine="1")), Host(1, Surroundings("b", gpus=(0, 1), machine="2"))]
    looked = SmokeResult(PAIR, seconds=3.4, level="pre", hosts=(hosts[0],))
    assert text(looked, "x") == (
        "x (TP 2): nothing speaks against it on one host (a), which has no GPU: 2 ranks would be tried on CPUs, and "
        "nothing of GPUs and NCCL was looked at; no rank was started, and nothing else is proven\n"
        "looked at devices, interfaces, shared memory, open files, leftover settings in 3.4 s\n"
    )
    both = text(looked._replace(hosts=tuple(hosts)))
    assert "nothing speaks against it on 2 hosts, a of them without a GPU: 2 ranks would" in both
    assert "hostnames, who reaches whom, RDMA, what differs in 3.4 s" in both
    assert headline(looked._replace(hosts=(hosts[1],))).endswith(
        "nothing speaks against it on one host (b); no rank was started, and nothing else is proven"
    )


def test_as_many_claims_are_counted_as_there_are_lines() -> None:
    wide = plan(EXPERTS, tp=2, pp=2, dp=2, ep=True)
    lines = text(_result(_all_held(wide), wide)).splitlines()
    assert lines[-1] == f"{sum(line.startswith('ok ') for line in lines)} claims held in 1.5 s"


def test_many_ranks_are_named_by_their_ends() -> None:
    wide = plan(DENSE, tp=8)
    assert "ok    split-mlp, tp [0..7]: " in text(_result(_all_held(wide), wide))


def test_json_holds_every_judgement_of_every_rank() -> None:
    data = json.loads(json.dumps(json_data(_with_a_wrong_shard(), "Deployment/llama")))
    assert data["schema"] == 1
    assert data["deployment"] == "Deployment/llama"
    assert data["exit_code"] == 1
    assert data["failed"] == ["split-mlp"]
    assert data["plan"]["groups"] == {"tp": [[0, 1]]}
    assert [claim for claim in data["claims"] if not claim["ok"]] == [
        {
            "name": "split-mlp",
            "kind": "tp",
            "group": [0, 1],
            "rank": rank,
            "ok": False,
            "message": "9 of 1024 elements differ, by 3 at most: rank 1 added nothing",
        }
        for rank in (0, 1)
    ]
