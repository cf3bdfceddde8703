"""`shardlint check --against VERSION`: what an upgrade would change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardlint.front.main import main

PINNED = """\
services:
  chat:
    image: vllm/vllm-openai:v0.10.2
    command: --model own/model --swap-space 4 --tensor-parallel-size two
  new:
    image: vllm/vllm-openai:v0.10.2
    command: --model own/model --nnodes 2
  steady:
    image: vllm/vllm-openai:v0.10.2
    command: --model own/model
  other:
    image: lmsysorg/sglang:v0.5.0
    command: python3 -m sglang.launch_server --model-path own/model
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("compose.yaml").write_text(PINNED)


def test_what_appears_and_what_goes_is_printed_by_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("check", "--select", "refused-flag", "--against", "0.33.0", "compose.yaml")) == 1
    assert capsys.readouterr().out.splitlines() == [
        "compose.yaml:4: service/chat: from vLLM 0.10.2 to vLLM 0.33.0",
        "+ compose.yaml:4:32: error[SL902 refused-flag]: vLLM 0.33.0 refuses this command line: unrecognized arguments: "
        "--swap-space 4",
        "",
        "compose.yaml:7: service/new: from vLLM 0.10.2 to vLLM 0.33.0",
        "- compose.yaml:7:32: error[SL902 refused-flag]: vLLM 0.10.2 refuses this command line: unrecognized arguments: "
        "--nnodes 2",
        "",
        "2 of 3 deployments of vLLM would change with 0.33.0: 1 finding would appear, 1 would go",
    ]


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(("--format", "json", "--select", "refused-flag", "--against", "0.33.0", "compose.yaml"))
    document = json.loads(capsys.readouterr().out)
    assert document["against"] == "0.33.0"
    assert document["summary"] == {"deployments": 3, "changed": 2, "appear": 1, "go": 1}
    chat, new, steady = document["deployments"]
    assert [finding["code"] for finding in chat["appear"]] == ["SL902"]
    assert (chat["from"], chat["go"], new["appear"], steady["appear"], steady["go"]) == ("0.10.2", [], [], [], [])


def test_an_upgrade_to_the_same_release_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("--against", "0.10.2", "compose.yaml")) == 0
    assert capsys.readouterr().out.startswith("0 of 3 deployments of vLLM would change")


def test_what_is_no_release_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("--against", "latest", "compose.yaml")) == 2
    assert "--against latest: not a release" in capsys.readouterr().err
