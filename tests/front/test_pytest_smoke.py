"""`pytest --shardlint-smoke`, by the real pytest in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  template:
    spec:
      containers:
      - image: vllm/vllm-openai:v0.33.0
        command: [vllm, serve, {model}, --tensor-parallel-size=2]
        resources: {{limits: {{nvidia.com/gpu: 2}}}}
---
"""
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}


def _pytest(folder: Path, *words: str, **environment: str) -> str:

    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-rA",
        *words,
    ]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False
    )
    return run.stdout + run.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    both = DEPLOYMENT.format(name="one", model="org/one") + DEPLOYMENT.format(name="two", model="org/nobody-knows")
    (tmp_path / "both.yaml").write_text(both)
    (tmp_path / "models.json").write_text(json.dumps({"org/one": MODEL}))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


WORDS = ("--shardlint-smoke", "--shardlint-models", "models.json")


def test_each_deployment_is_tried_or_skipped_with_the_reason(folder: Path) -> None:
    said = _pytest(folder, *WORDS)
    assert "PASSED both.yaml::Deployment/one[smoke]" in said
    assert "Deployment/one (TP 2) on CPU (2 processes of one host, gloo, " in said
    assert "Deployment/two cannot be tried: the layout is not known: " in said
    assert "1 passed, 1 skipped" in said
    assert "2 deselected" in _pytest(folder, *WORDS, "-m", "not shardlint_smoke")


def test_what_does_not_hold_fails_with_the_report(folder: Path) -> None:
    said = _pytest(folder, *WORDS, GLOO_SOCKET_IFNAME="^lo")
    assert "FAILED both.yaml::Deployment/one[smoke]" in said
    assert "Deployment/one (TP 2): 1 error in the surroundings on one host (" in said
    assert "GLOO_SOCKET_IFNAME=^lo: gloo knows no exclusion (NCCL does)" in said
    assert "Traceback" not in said


def test_without_torch_it_is_skipped(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "torch.py").write_text('raise ModuleNotFoundError("No module named torch", name="torch")')
    said = _pytest(folder, *WORDS, "-k", "one", PYTHONPATH=str(folder / "elsewhere"))
    assert "torch is not installed: it comes with the extra `smoke` of shardlint" in said
    assert "1 skipped" in said
