"""`shardlint plan`: the command's words, its text and its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shardlint.front.main import main

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
MANIFEST = """\
services:
  chat:
    image: vllm/vllm-openai:v0.33.0
    command: --model {model} --tensor-parallel-size 3 --max-model-len 8192
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, count: 4, capabilities: [gpu]}}]}}}}}}
"""


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["plan", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_best_layout_comes_first_with_its_flags_and_refused_ones_with_their_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(MODEL, "--gpus", "H100-80GB:6", "--max-model-len", "8192", capsys=capsys)
    assert code == 0
    assert "on 1 node of 6 x H100 SXM5 80GB" in out
    assert "1. --tensor-parallel-size 1 --data-parallel-size 6" in out
    assert "TP 6: 32 attention heads do not divide by the tensor parallel size 6" in out


def test_of_a_model_whose_size_is_not_known_both_answers_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    second_hand = "meta-llama/Meta-Llama-3.1-405B-Instruct"  # the catalogue has its heads and layers alone
    _, out, _ = run(second_hand, "--gpus", "H100-80GB:8", "--nodes", "2", capsys=capsys)
    assert "memory not known" in out
    said = re.findall(r"^([12])\. .*\n   (whether the model fits one node is not known: .*)$", out, re.MULTILINE)
    assert [(number, "does not" in why) for number, why in said] == [("1", False), ("2", True)]


QWEN = ("Qwen/Qwen3-32B", "--gpus", "H100-80GB:8", "--requests", "200")


def test_layouts_that_hold_fewer_requests_than_asked_for_say_so_and_what_would_hold_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(*QWEN, "--format", "json", capsys=capsys)
    report = json.loads(out)
    held = [layout["requests"]["likely"] for layout in report["layouts"]]
    assert (code, held) == (1, sorted(held, reverse=True))
    for layout in report["layouts"]:
        few = layout["requests"]["likely"]
        assert (f"{200 - few:.0f} fewer than asked for" if few else "holds 0.") in layout["missing"]
    assert report["missed"].startswith("no layout holds 200 requests of 40960 tokens at once on these GPUs")
    nodes, length = (re.search(rf"{flag} (\d+)", report["missed"]) for flag in ("--nodes", "--max-model-len"))
    assert nodes is not None and length is not None
    for advised in (("--nodes", nodes[1]), ("--max-model-len", length[1])):
        code, out, _ = run(*QWEN, *advised, capsys=capsys)
        assert code == 0
        assert "no layout holds" not in out and "1. " in out.split("too little")[0]
    code, out, _ = run(*QWEN, "--emit", "command", capsys=capsys)
    assert code == 0 and "fewer than asked for" in out.split("exec ")[0]


def test_layouts_that_hold_enough_stand_before_those_that_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(*QWEN[:-1], "45", "--format", "json", capsys=capsys)
    report = json.loads(out)
    enough = [layout["requests"]["likely"] >= 45 for layout in report["layouts"]]
    assert (code, report["missed"]) == (0, "")
    assert True in enough and False in enough and enough == sorted(enough, reverse=True)
    assert [not layout["missing"] for layout in report["layouts"]] == enough


def test_a_model_that_may_not_hold_one_request_is_not_offered_as_if_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(QWEN[0], "--gpus", "H100-80GB:1", capsys=capsys)
    assert code == 1
    assert "no layout holds 1 request of 40960 tokens" in out
    assert "a replica likely holds 0." in out
    assert "0 requests at once" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [(("H100-80GB:8",), 0), (("L4:1",), 1), (("H100-80GB:8", "--requests", "999"), 1), (("B900:8",), 2)],
)
def test_every_exit_code_is_in_the_help(words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(QWEN[0], "--gpus", *words, capsys=capsys)[0] == code
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    told = capsys.readouterr().out.partition("exit codes: ")[2]
    assert re.search(rf"(^|; ){code} ", told)


@pytest.mark.parametrize(
    ("gpus", "advice"),
    [
        ("B900:8", "'B900' is no card that is known here; give its memory too, as in B900-24GB:8"),
        ("H100:999999999", "at most 100000 are taken"),
        ("H100:0", "a count is 1 or more"),
        ("H100", "not NAME:COUNT"),
    ],
)
def test_what_is_wrong_with_gpus_is_said_in_their_own_spelling(
    gpus: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(MODEL, "--gpus", gpus, "--nodes", "2", capsys=capsys)
    assert code == 2
    assert err.startswith(f"shardlint: --gpus {gpus}: ")
    assert advice in err and "hardware" not in err


def test_a_card_that_is_not_known_can_bring_its_memory(capsys: pytest.CaptureFixture[str]) -> None:
    _, own, _ = run(MODEL, "--gpus", "B900-24GB:8", "--nodes", "2", capsys=capsys)
    assert "on 2 nodes of 8 x B900, " in own
    assert run(MODEL, "--hardware", "2x8xB900:24", capsys=capsys)[1] == own


@pytest.mark.parametrize("words", [("H100-80GB:1", "--max-model-len", "8192"), ("H100-80GB:6", "--nodes", "2")])
def test_words_are_plain(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(MODEL, "--gpus", *words, "--all", capsys=capsys)
    assert not re.search(r"\b1 (GPUs|requests|nodes|replicas)\b|\btable\b|\de[+-]\d", out)


def test_json_holds_the_same_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    words = (MODEL, "--hardware", "2x8xH100", "--format", "json", "--objective", "latency")
    code, out, _ = run(*words, capsys=capsys)
    report = json.loads(out)
    assert code == 0
    first = report["layouts"][0]
    assert (first["tensor_parallel_size"], first["data_parallel_size"], first["gpus"]) == (8, 2, 16)
    assert first["requests"]["low"] <= first["requests"]["likely"] <= first["requests"]["high"]
    whole = first["requests"]["likely"]
    assert whole % 2 == 0, "each of the two replicas holds the same, and whole ones"
    assert whole <= first["kv_tokens"]["likely"] / report["max_model_len"] < whole + 2
    assert first["bytes_sent_per_token"] == (64 + 1) * 4096 * 2
    assert any("TP 3" in layout for refused in report["refused"] for layout in refused["layouts"])


def test_a_manifest_brings_its_model_its_length_and_its_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "compose.yaml"
    manifest.write_text(MANIFEST.format(model=MODEL))
    code, out, err = run(str(manifest), "--gpus", "L40S:4", capsys=capsys)
    assert (code, err) == (0, "")
    assert "asked for: 1 request of 8192 tokens at once" in out
    assert "--tensor-parallel-size 3" not in out


def test_what_fits_nowhere_is_told_with_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("Qwen/Qwen3-235B-A22B", "--gpus", "L4:1", capsys=capsys)
    assert code == 1
    assert "no layout works on these GPUs" in out
    assert "GiB for its weights" in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((MODEL,), "name the GPUs"),
        ((MODEL, "--nodes", "2"), "name the GPUs"),
        ((MODEL, "--gpus", "eight"), "not NAME:COUNT"),
        ((MODEL, "--gpus", "H100:8", "--nodes", "0"), "0 is no number from 1 on"),
        ((MODEL, "--hardware", "8xH100,4xH100"), "equally many GPUs"),
        (("no/such-model-at-all", "--gpus", "H100:8"), "no/such-model-at-all"),
        ((MODEL, "--gpus", "H100:8", "--nodes", "1000"), "at most"),
    ],
)
def test_what_cannot_be_planned_is_said(words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (2, "")
    assert why in err
