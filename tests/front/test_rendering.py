"""Rendered manifests: standard input from `helm template`, and `--render` with the tools of this machine."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest

from shardlint.front import rendering
from shardlint.front.main import main

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args: [--model=Qwen/Qwen3-32B, --tensor-parallel-size=TP]
"""
CHART = "---\n# Source: chat/templates/chat.yaml\n" + DEPLOYMENT.replace("TP", "6")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def runner(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        return code, *capsys.readouterr()

    return runner


def tool(name: str, script: str, monkeypatch) -> None:
    """A program of this name, the only one on the path but for the shell's own."""
    folder = Path("tools")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder.resolve()}{os.pathsep}/bin")


def chart(path: str) -> Path:
    folder = Path(path)
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: chat\n")
    (folder / "templates" / "chat.yaml").write_text(DEPLOYMENT.replace("TP", "{{ .Values.tp }}"))
    return folder


def found(out: str) -> list[tuple[str, int, str]]:
    return [(one["path"], one["line"], one["code"]) for one in json.loads(out)["findings"]]


def test_what_helm_prints_names_the_files(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CHART.encode())))
    code, out, _ = run("-")
    assert code == 1
    assert "chat/templates/chat.yaml:14:65: error[SL101 query-heads]" in out
    assert "14 |           args: [--model=Qwen/Qwen3-32B, --tensor-parallel-size=6]" in out


def test_a_comment_that_ignores_works_in_what_helm_prints(run, monkeypatch):
    text = CHART.replace("=6]", "=6] # shardlint: ignore[SL1] meant")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run("--select", "SL1", "-")[0] == 0


def test_a_chart_is_rendered_by_helm_in_the_place_of_its_files(run, monkeypatch):
    folder = chart("deploy/chat")
    (folder / "out.txt").write_text(CHART)
    tool("helm", '[ "$1" = template ] || exit 9; cat "$2/out.txt"', monkeypatch)
    code, out, _ = run("--format", "json", "--select", "SL101", "--render", "deploy")
    assert (code, found(out)) == (1, [("deploy/chat/templates/chat.yaml", 14, "SL101")])
    code, out, _ = run("inspect", "--format", "json", "--render", "deploy")
    assert [one["tensor_parallel_size"] for one in json.loads(out)["deployments"]] == [6]


def test_nothing_is_started_unless_asked(run, monkeypatch):
    chart("deploy/chat")
    tool("helm", "touch started; exit 1", monkeypatch)
    run("deploy")
    assert not Path("started").exists()


def test_a_tool_that_fails_is_told_with_its_words(run, monkeypatch):
    chart("deploy/chat")
    tool("helm", "echo 'Error: values are missing' >&2; exit 3", monkeypatch)
    code, out, _ = run("--format", "json", "--render", "deploy")
    (finding,) = json.loads(out)["findings"]
    assert (code, finding["code"], finding["path"]) == (1, "SL001", "deploy/chat")
    assert "exit code 3" in finding["message"] and "Error: values are missing" in finding["message"]


def test_a_tool_that_hangs_is_ended(run, monkeypatch):
    chart("deploy/chat")
    tool("helm", "exec sleep 30", monkeypatch)
    monkeypatch.setattr(rendering, "SECONDS", 0.2)
    code, out, _ = run("--render", "deploy")
    assert code == 1 and "still running after 0.2 seconds" in out


def test_what_cannot_be_rendered_ends_the_run(run, monkeypatch):
    chart("deploy/chat")
    Path("empty").mkdir()
    monkeypatch.setenv("PATH", "nowhere")
    code, _, err = run("--render", "deploy")
    assert code == 2 and "helm is not installed" in err
    Path("empty/kustomization.yaml").write_text("resources: []\n")
    code, _, err = run("--render", "empty")
    assert code == 2 and "neither kustomize nor kubectl is installed" in err
    code, _, err = run("--render", "deploy/chat/templates")
    assert code == 2 and "neither a chart nor a kustomization" in err


OVERLAY = """\
resources: [deployment.yaml]
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: replace, path: /spec/template/spec/containers/0/args/1, value: --tensor-parallel-size=6}
"""


def overlay(path: str) -> None:
    Path(path).mkdir()
    Path(path, "deployment.yaml").write_text(DEPLOYMENT.replace("TP", "8"))
    Path(path, "kustomization.yaml").write_text(OVERLAY)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on this machine")
def test_a_kustomization_is_built_by_kubectl(run):
    overlay("over")
    code, out, _ = run("--format", "json", "--select", "SL101", "--render", ".")
    (finding,) = json.loads(out)["findings"]
    assert (code, finding["path"], finding["code"]) == (1, "over", "SL101")


def test_kustomize_comes_before_kubectl(run, monkeypatch):
    overlay("over")
    Path("out.txt").write_text(DEPLOYMENT.replace("TP", "6"))
    tool("kubectl", "exit 1", monkeypatch)
    tool("kustomize", '[ "$1 $2" = "build ./over" ] || exit 9; cat out.txt', monkeypatch)
    code, out, _ = run("--format", "json", "--select", "SL101", "--render", "over")
    assert (code, found(out)) == (1, [("over", 12, "SL101")])


def test_a_folder_named_like_an_option_is_no_option(run, monkeypatch):
    chart("--post-renderer=evil")
    tool("helm", 'case "$2" in -*) touch ran;; *) printf "%s" "---";; esac', monkeypatch)
    code, out, err = run("check", "--render", ".")
    assert code == 0, out + err
    assert not Path("ran").exists()


@pytest.mark.parametrize("printed", ["", "---", "a: 1"])
def test_a_chart_that_makes_nothing_is_a_chart_that_makes_nothing(printed, run, monkeypatch):
    chart("chat")
    tool("helm", f"printf '%s' '{printed}'", monkeypatch)
    code, out, err = run("check", "--render", "chat")
    assert (code, err) == (0, "")
    assert "no deployment to check" in out
