"""Files that a manifest names, through the command line: they are found on the disk, shown, and never outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shardlint.front.main import main

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
FP8 = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    def call(*words: str) -> tuple[int, str]:
        code = main([*words, "."])
        return code, capsys.readouterr().out

    return call


def write(path: str, content: str | dict[str, object]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content if isinstance(content, str) else json.dumps(content))


def test_side_files_of_a_model_folder_count(run: Run) -> None:
    write("models/chat/config.json", CONFIG)
    write("run.sh", "vllm serve models/chat --max-model-len 2048\n")
    code, out = run("--hardware", "1xRTX 3060:12")
    assert code == 1 and "run.sh:1:12: error[SL701 replica-memory]: the model needs at least 15.0 GiB" in out
    write("models/chat/hf_quant_config.json", FP8)
    assert run("--hardware", "1xRTX 3060:12")[0] == 0


def test_a_side_file_that_is_broken_is_said(run: Run) -> None:
    write("models/chat/config.json", CONFIG)
    write("models/chat/hf_quant_config.json", "{")
    write("run.sh", "vllm serve models/chat -tp 3\n")
    code, out = run()
    assert code == 0 and "hf_quant_config.json is not JSON" in out


def test_a_file_of_flags_is_shown_where_it_is_wrong(run: Run) -> None:
    write("models/chat/config.json", CONFIG)
    write("deploy/serve.yaml", "model: models/chat\ntensor-parallel-size: 3\n")
    write("deploy/run.sh", "vllm serve --config ./serve.yaml\n")
    code, out = run("--select", "query-heads")
    assert code == 1
    assert out.startswith("deploy/serve.yaml:2:23: error[SL101 query-heads]: 32 attention heads")
    assert "2 | tensor-parallel-size: 3\n  |                       ^\n" in out
    assert "1 error in 1 deployment of 3 files" in out


def test_a_file_outside_of_the_scanned_folders_is_not_opened(run: Run) -> None:
    write("../outside.yaml", "tensor-parallel-size: 3\n")
    write("run.sh", "source ../x.env\nvllm serve models/chat --config ../outside.yaml -pp $PP\n")
    write("../x.env", "PP=2\n")
    _code, out = run("inspect")
    assert "outside.yaml lies outside of the scanned folders" in out
    assert "pipeline_parallel_size         unknown: $PP is not set in this file" in out


@pytest.mark.parametrize("name", ["Dockerfile", "vllm.Dockerfile", "Dockerfile.gpu", "Containerfile"])
def test_a_search_finds_dockerfiles_that_speak_of_engines(run: Run, name: str) -> None:
    write(f"image/{name}", 'FROM vllm/vllm-openai:v0.33.0\nCMD ["--model", "org/model", "-tp", "2"]\n')
    write("other/Dockerfile", "FROM python:3.12\nCMD python -m http.server\n")
    _code, out = run("inspect")
    assert out.startswith(f"image/{name}:2:7: {name} (vllm, read as dockerfile)")
    assert "other/" not in out


def test_variables_of_a_file_beside_a_compose_file_are_shown_there(run: Run) -> None:
    write("models/chat/config.json", CONFIG)
    write("stack/.env", "MODEL=models/chat\nTP=3\n")
    write("stack/compose.yaml", "services:\n  llm:\n    command: vllm serve $MODEL --tensor-parallel-size ${TP:-4}\n")
    code, out = run("--select", "query-heads", "--format", "json")
    (finding,) = json.loads(out)["findings"]
    assert code == 1 and "32 attention heads" in finding["message"]
