"""`--diff`: patches that `patch` takes, and after which the finding is gone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shardlint.front.main import main

FILES = {
    "compose.yaml": """\
services:
  chat:   # kept
    image: vllm/vllm-openai:v0.33.0
    command: >-
      --model meta-llama/Llama-3.1-8B-Instruct
      -tp 3   --max-model-len 8192
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 8, capabilities: [gpu]}]}}}
""",
    "serve.sh": 'WAYS=6   # six cards\nvllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size "$WAYS"\n',
    "no-end.sh": "vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 7",
    "windows.sh": "vllm serve meta-llama/Llama-3.1-8B-Instruct \\\r\n  -tp 6\r\n",
    "parts.sh": "VLLM_PP_LAYER_PARTITION=9,9,9,9 vllm serve meta-llama/Llama-3.1-8B-Instruct -pp 4\n",
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# one\f\n# two\x85\n# 3\n# 4\n# 5\nvllm serve meta-llama/Llama-3.1-8B-Instruct -tp 6\n", "-tp 8"),
        ("# \x1b[31m\nvllm serve meta-llama/Llama-3.1-8B-Instruct -tp 6\n", "# no patch"),
    ],
)
def test_characters_that_a_terminal_acts_on_neither_move_a_patch_nor_are_printed(
    text: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(text, encoding="utf-8")
    assert main(["check", "serve.sh", "--select", "query-heads", "--diff"]) == 1
    patch = capsys.readouterr().out
    assert line in patch
    assert all(character.isprintable() or character == "\n" for character in patch)


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch program")
@pytest.mark.parametrize("name", FILES)
def test_a_patch_mends_what_it_stands_under(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name
    file.write_bytes(FILES[name].encode())
    assert main(["check", name, "--select", "query-heads,layer-partition", "--diff"]) == 1
    patch = capsys.readouterr().out
    assert file.read_bytes() == FILES[name].encode()  # nothing is ever written to a manifest
    subprocess.run(["patch", "-p1", "--binary"], input=patch.encode(), check=True, capture_output=True)
    changed = file.read_bytes().decode()
    assert main(["check", name, "--select", "query-heads,layer-partition"]) == 0
    pairs = zip(FILES[name].splitlines(), changed.splitlines(), strict=True)
    assert sum(before != after for before, after in pairs) == 1
    assert ("# kept" in changed) == ("# kept" in FILES[name])
    assert changed.endswith("\n") == FILES[name].endswith("\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_patches_of_many_findings_are_applied_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode())
    misspelt = "vllm serve meta-llama/Llama-3.1-8B-Instruct --gpu-memory-utilizaton 95 -tp 6\nvllm serve a/b -pp 0\n"
    Path("misspelt.sh").write_text(misspelt)
    main(["check", ".", "--diff"])
    patch = capsys.readouterr().out
    assert "# mended with another finding: -tp 8" in patch  # heads and KV heads are refused alike
    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True, capture_output=True)
    assert Path("misspelt.sh").read_text().splitlines()[0].endswith("--gpu-memory-utilization 95 -tp 8")
    main(["check", "misspelt.sh", "--diff"])
    subprocess.run(["git", "apply", "-"], input=capsys.readouterr().out.encode(), check=True, capture_output=True)
    assert Path("misspelt.sh").read_text().splitlines()[0].endswith("--gpu-memory-utilization 0.95 -tp 8")


def test_advice_that_is_no_edit_is_shown_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text("vllm serve Qwen/Qwen3-8B -tp 2 --enable-expert-parallel\n")
    assert main(["check", "serve.sh", "--select", "expert-parallel-dense", "--diff"]) == 1
    assert "# no patch: leave --enable-expert-parallel out" in capsys.readouterr().out
