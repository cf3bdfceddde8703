"""`shardlint smoke`, from the manifest to the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from smoke_plans import DENSE
from smoke_processes import processes_of

from shardlint.front.main import main
from shardlint.smoke.trial import REPETITIONS

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        command: [vllm, serve, {model}, --tensor-parallel-size, "2"]
        resources: {{limits: {{nvidia.com/gpu: 2}}}}
---
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    (tmp_path / "one.yaml").write_text(DEPLOYMENT.format(name="one", model="org/one"))
    (tmp_path / "both.yaml").write_text(
        DEPLOYMENT.format(name="one", model="org/one") + DEPLOYMENT.format(name="two", model="org/nobody-knows")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder", "room")
def test_the_layout_of_one_deployment_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["smoke", "both.yaml", "--models", "models.json", "--deployment", "Deployment/one", "--deadline", "60"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Deployment/one (TP 2) on ")
    assert "not proven: " in lines[0]
    assert lines[-1].startswith("9 claims held in ")


@pytest.mark.usefixtures("room")
def test_options_that_change_what_is_tried_are_heeded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = '"2", --dtype, half, --cp-kv-cache-interleave-size, "16"]'
    (folder / "more.yaml").write_text((folder / "one.yaml").read_text().replace('"2"]', options))
    words = ["smoke", "more.yaml", "--models", "models.json", "--allocate", "--hardware", "2xL4"]
    assert main(words) == 0
    headline, *lines = capsys.readouterr().out.splitlines()
    assert "memory" in headline.partition("not proven: ")[2]
    assert re.search(r"the allocation of \d\d\.\d GiB$", headline)  # which only GPUs have
    (scale,) = (line for line in lines if line.startswith("scale: "))
    assert "cp_kv_cache_interleave_size 16 as 4" in scale
    assert scale.endswith(", then float16, tolerance 0.005")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "there are several deployments; --deployment NAME chooses one: Deployment/one, Deployment/two"),
        (["--deployment", "three"], "no deployment is called three; there are: Deployment/one, Deployment/two"),
        (["--deployment", "Deployment/two"], "Deployment/two cannot be tried: the layout is not known: "),
        (
            ["--deployment", "Deployment/one", "--allocate"],
            "--allocate: what the ranks of Deployment/one take is not known: ",
        ),
        (["--deadline", "0"], "argument --deadline: 0 is no time to wait"),
        (["--deadline", "1e30"], "argument --deadline: 1e30 is no time to wait: seconds go from 0.1 to 604800"),
        (["--stall", "0.001"], "argument --stall: 0.001 is no time to wait"),
        (["--deadline", "nan"], "argument --deadline: nan is no time to wait"),
    ],
)
def test_what_cannot_be_tried_ends_with_2(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "both.yaml", "--models", "models.json", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"shardlint: {why}")
    assert captured.out == ""


@pytest.mark.parametrize("command", ["smoke", "show"])
def test_a_deployment_may_be_called_by_its_name_alone_where_no_other_is_called_so(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, "both.yaml", "--models", "models.json", "--deployment", "one"]
    words += ["--level", "pre"] if command == "smoke" else []
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("Deployment/one")
    one = (folder / "one.yaml").read_text()
    (folder / "both.yaml").write_text(one + one.replace("kind: Deployment", "kind: StatefulSet"))
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "shardlint: 2 deployments are called one; there are: Deployment/one, StatefulSet/one\n"
    )


def test_an_engine_whose_layouts_are_not_known_is_not_tried(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = DEPLOYMENT.format(name="one", model="org/one").replace(
        "vllm/vllm-openai:v0.33.0", "lmsysorg/sglang:v0.5.0"
    )
    command = "[python3, -m, sglang.launch_server, --model-path, org/one, "
    (folder / "sglang.yaml").write_text(manifest.replace("[vllm, serve, org/one, ", command))
    assert main(["smoke", "sglang.yaml", "--models", "models.json"]) == 2
    assert capsys.readouterr().err == (
        "shardlint: Deployment/one cannot be tried: how SGLang lays out its ranks is not known\n"
    )


@pytest.mark.usefixtures("folder")
def test_a_host_whose_name_no_resolver_takes_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "x" * 64)  # which Linux allows, and names of 63 at most resolve
    assert main(["smoke", "one.yaml", "--models", "models.json", "--level", "pre"]) == 0


@pytest.fixture
def no_torch(folder: Path, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "torch.py").write_text('raise ModuleNotFoundError("No module named torch", name="torch")')
    monkeypatch.setenv("PYTHONPATH", str(folder))


NOT_TRIED = "Deployment/one (TP 2) was not tried: torch is not installed: it comes with the extra `smoke` of shardlint"


@pytest.mark.usefixtures("no_torch")
def test_without_torch_nothing_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "one.yaml", "--models", "models.json"]) == 2
    assert capsys.readouterr().err == f"shardlint: {NOT_TRIED}\n"


@pytest.mark.usefixtures("no_torch")
def test_json_is_printed_however_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "one.yaml", "--models", "models.json", "--format", "json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert (data["deployment"], data["headline"], data["exit_code"]) == ("Deployment/one", NOT_TRIED, 2)


def test_the_help_of_level_says_how_often_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["smoke", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"each exchange timed {REPETITIONS['quick']} times; full: timed {REPETITIONS['full']} times" in said
    assert "130 interrupted" in said


@pytest.mark.parametrize(
    ("sent", "code", "said_of_it"),
    [
        ([signal.SIGINT], 130, "interrupted"),
        ([signal.SIGINT] * 5, 130, "interrupted"),
        ([signal.SIGTERM], 143, "interrupted by SIGTERM"),
        ([signal.SIGHUP, signal.SIGTERM], 129, "interrupted by SIGHUP"),
    ],
)
def test_an_interrupted_run_says_so_and_leaves_nothing(
    sent: list[signal.Signals], code: int, said_of_it: str, folder: Path, room: Path
) -> None:
    (folder / "torch.py").write_text("import time; time.sleep(600)")
    there = os.environ | {"PYTHONPATH": str(folder), "TMPDIR": str(room)}
    command = [sys.executable, "-m", "shardlint", "smoke", "one.yaml", "--models", "models.json"]
    with subprocess.Popen(command, env=there, stderr=subprocess.PIPE, text=True) as running:
        end = time.monotonic() + 30
        while not processes_of(room) and time.monotonic() < end:
            time.sleep(0.02)
        for each in sent:
            running.send_signal(each)
            time.sleep(0.05)
        _out, said = running.communicate(timeout=30)
    assert (running.returncode, said) == (
        code,
        f"shardlint: {said_of_it}: the ranks are ended, and nothing is proven\n",
    )


def test_replicas_beyond_the_devices_are_left_out_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DEPLOYMENT.format(name="wide", model="org/one").replace('"2"]', '"4", --data-parallel-size, "12"]')
    (folder / "wide.yaml").write_text(text.replace("gpu: 2", "gpu: 48"))
    main(["smoke", "wide.yaml", "--models", "models.json", "--level", "pre", "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["headline"].startswith("Deployment/wide (DP 8 × TP 4): ")
    assert data["not_proven"][-1] == "data_parallel_size 12 (tried with 8)"


ALWAYS = 4
"""NCCL, bandwidth, memory and several nodes are proven by no look at one host."""


@pytest.mark.parametrize(
    ("command", "beside"),
    [
        ("Qwen/Qwen3-8B -tp 2", []),
        ("Qwen/Qwen3-8B -tp 2 --quantization fp8", ["weights quantised by fp8"]),
        ("deepseek-ai/DeepSeek-R1 -tp 8", ["MLA's latent projections", "weights quantised by fp8"]),
        (
            "deepseek-ai/DeepSeek-V3.2 -tp 8",
            ["MLA's latent projections", "weights quantised by fp8", "the index of sparse attention"],
        ),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct -tp 2", ["layers with a recurrent state"]),
        ("Qwen/Qwen2.5-VL-7B-Instruct -tp 2", ["towers of images or sounds"]),
    ],
)
def test_what_no_claim_is_about_is_not_proven(
    command: str, beside: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "serve.sh").write_text(f"vllm serve {command}\n")
    main(["smoke", "serve.sh", "--level", "pre", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["not_proven"][ALWAYS:] == beside
