"""What a plan writes: shardlint reads it back as the layout that was chosen, and finds nothing wrong with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from shardlint import check as checking
from shardlint.check import Settings
from shardlint.facts import hardware_spec
from shardlint.facts.hardware import Hardware
from shardlint.findings import Located, Unknown
from shardlint.front.main import main
from shardlint.planning.emitting import KINDS
from shardlint.text import Library, Source

DENSE, LARGE, EXPERTS = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-235B-A22B"
SPREAD = "meta-llama/Llama-3.3-70B-Instruct"
LENGTH = "8192"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


class NoFiles(Library):
    """Models are those of the catalogue."""

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"no {model_id}")


@pytest.mark.parametrize(
    ("model", "spec", "kind", "sizes"),
    [
        (DENSE, "8xH100", "command", {"tensor_parallel_size": 1, "data_parallel_size": 8}),
        (DENSE, "8xH100", "kubernetes", {"tensor_parallel_size": 1, "replicas": 8, "gpus_per_pod": 1}),
        (SPREAD, "2x1xH100:80", "lws", {"pipeline_parallel_size": 2, "pods": 2, "gpus_per_pod": 1}),
        (SPREAD, "2x1xH100:80", "command", {"pipeline_parallel_size": 2, "nnodes": 2}),
        (EXPERTS, "8xH200", "kubernetes", {"tensor_parallel_size": 8, "replicas": 1, "gpus_per_pod": 8}),
        (LARGE, "2x8xH100", "lws", {"tensor_parallel_size": 8, "pipeline_parallel_size": 2, "pods": 2}),
    ],
)
def test_the_first_layout_comes_back(
    model: str, spec: str, kind: str, sizes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", model, "--hardware", spec, "--max-model-len", LENGTH, "--emit", kind]) == 0
    text = capsys.readouterr().out
    path = "serve.sh" if kind == "command" else "serve.yaml"
    hardware = hardware_spec.parse(spec)
    assert isinstance(hardware, Hardware)
    report = checking.check([Source(path, text)], NoFiles(), Settings(hardware=hardware))
    assert [finding.message for finding in report.findings if finding.severity != "note"] == []
    (deployment,) = report.deployments
    assert isinstance(deployment.model, Located)
    assert deployment.model.value == model
    for name, wanted in sizes.items():
        found = deployment.knobs.get(name) or getattr(deployment, name, None)
        assert isinstance(found, Located), name
        assert found.value == wanted


def test_copies_of_attention_on_several_nodes_are_one_engine_with_headless_followers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--hardware", "2x8xH200", "--objective", "throughput", "--max-model-len", LENGTH]
    assert main(["plan", LARGE, *words, "--emit", "lws"]) == 0
    leader, worker = capsys.readouterr().out.split("workerTemplate:")
    assert "--data-parallel-size=16" in leader
    assert "--headless" not in leader
    assert '--data-parallel-start-rank="$((LWS_WORKER_INDEX * 8))"' in worker
    assert "--headless" in worker


@pytest.mark.parametrize(
    ("model", "per_node", "nodes", "card", "objective"),
    [
        (DENSE, 8, 2, "H100", "throughput"),
        (EXPERTS, 8, 2, "H200", "latency"),
        (SPREAD, 2, 4, "H100-80GB", "fits"),
        ("meta-llama/Llama-3.1-8B-Instruct", 4, 1, "L4", "fits"),
    ],
)
def test_what_is_written_brings_the_warnings_that_were_listed(
    model: str, per_node: int, nodes: int, card: str, objective: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machines = f"{nodes}x{per_node}x{card}"
    words = ["plan", model, "--hardware", machines, "--objective", objective, "--max-model-len", LENGTH]
    main([*words, "--format", "json"])
    layouts = json.loads(capsys.readouterr().out)["layouts"][:5]
    written = set()
    for number, layout in enumerate(layouts, 1):
        for kind in KINDS:
            if main([*words, "--emit", kind, "--choose", str(number)]) == 2:
                assert "one engine of this layout takes" in capsys.readouterr().err
                continue
            text = capsys.readouterr().out
            written.add(kind)
            path = "serve.sh" if kind == "command" else "serve.yaml"
            hardware = hardware_spec.parse(f"{per_node}x{card}" if kind == "kubernetes" else machines)
            assert isinstance(hardware, Hardware)
            report = checking.check([Source(path, text)], NoFiles(), Settings(hardware=hardware))
            found = {(each.severity, each.code) for each in report.findings if each.severity != "note"}
            assert found == {("warning", each["code"]) for each in layout["warnings"]}, (number, kind)
            assert all(each["message"] in text for each in layout["warnings"])
    assert "command" in written and len(written) > 1


def started(script: str, node: int, folder: Path) -> list[str]:
    """The words of the engine that the script starts on a node."""
    (folder / "serve.sh").write_text(script)
    (folder / "vllm").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >> words; echo end >> words\n")
    (folder / "vllm").chmod(0o755)
    (folder / "words").unlink(missing_ok=True)
    there = {"PATH": f"{folder}:{os.environ['PATH']}", "NODE_RANK": str(node), "HEAD_ADDRESS": "10.0.0.1"}
    subprocess.run(["sh", "serve.sh"], cwd=folder, env=there, check=True, timeout=10)
    *words, end = (folder / "words").read_text().splitlines()
    assert end == "end" and "end" not in words, "one engine process on a node: its ranks need no ports from outside"
    return words


@pytest.mark.parametrize(
    ("model", "spec", "objective"),
    [
        (DENSE, "8xH100", "fits"),
        (DENSE, "2x8xH100", "throughput"),
        (EXPERTS, "2x8xH200", "throughput"),
        (LARGE, "4x8xH100", "throughput"),
        (SPREAD, "4x1xH100:80", "fits"),
    ],
)
def test_a_script_started_once_on_each_node_is_the_layout_that_was_listed(
    model: str, spec: str, objective: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", model, "--hardware", spec, "--objective", objective, "--max-model-len", LENGTH]
    main([*words, "--format", "json"])
    layouts = json.loads(capsys.readouterr().out)["layouts"][:5]
    for number, layout in enumerate(layouts, 1):
        assert main([*words, "--emit", "command", "--choose", str(number)]) == 0
        script = capsys.readouterr().out
        nodes = int(found[1]) if (found := re.search(r"each of the (\d+) nodes", script)) else 1
        of_nodes = [started(script, node, tmp_path) for node in range(nodes)]
        assert ["--headless" in each for each in of_nodes] == [node > 0 for node in range(nodes)]
        for flag in layout["flags"]:
            assert all(flag.replace(" ", "=") in each for each in of_nodes), flag
        per_node = layout["gpus"] // nodes
        replica = layout["tensor_parallel_size"] * layout["pipeline_parallel_size"]
        for node, each in enumerate(of_nodes):
            if f"--nnodes={nodes}" in each:
                assert f"--node-rank={node}" in each
            elif node:
                assert f"--data-parallel-start-rank={node * per_node // replica}" in each


@pytest.mark.parametrize(
    ("model", "spec", "kind", "why"),
    [(DENSE, "8xH100", "lws", "takes one node"), (SPREAD, "2x1xH100:80", "kubernetes", "takes 2 nodes")],
)
def test_a_kind_that_cannot_hold_the_layout_is_refused(
    model: str, spec: str, kind: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", model, "--hardware", spec, "--max-model-len", LENGTH, "--emit", kind]) == 2
    assert why in capsys.readouterr().err


def test_another_layout_can_be_chosen_and_one_that_is_not_there_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", DENSE, "--hardware", "8xH100", "--max-model-len", LENGTH, "--emit", "command"]
    assert main([*words, "--choose", "2"]) == 0
    assert "--tensor-parallel-size=8" in capsys.readouterr().out
    assert main([*words, "--choose", "99"]) == 2
    assert "99" in capsys.readouterr().err


def test_a_model_by_a_strange_name_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my model: one"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,'
        ' "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000,'
        ' "max_position_embeddings": 2048, "torch_dtype": "bfloat16"}'
    )
    for kind in ("command", "kubernetes"):
        assert main(["plan", str(folder), "--hardware", "1xH100", "--emit", kind]) == 0
        source = Source("serve.sh" if kind == "command" else "serve.yaml", capsys.readouterr().out)
        (deployment,) = checking.read([source], NoFiles(), Settings()).deployments
        assert isinstance(deployment.model, Located)
        assert deployment.model.value == str(folder)


@pytest.mark.parametrize("kind", ["command", "kubernetes"])
@pytest.mark.parametrize("name", ["a\nrm -rf x", "a\x1b[2J", "--help"])
def test_a_name_that_would_leave_its_place_is_in_no_manifest(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = tmp_path / "models.json"
    models.write_text(json.dumps({name: CONFIG}))
    manifest = tmp_path / "compose.yaml"
    command = json.dumps([f"--model={name}"])
    manifest.write_text(f"services: {{chat: {{image: vllm/vllm-openai, command: {command}}}}}\n")
    words = ["plan", str(manifest), "--models", str(models), "--hardware", "8xH100", "--emit", kind]
    assert main(words) == 2
    printed = capsys.readouterr()
    assert "is no name that can stand in a manifest" in printed.err
    assert printed.out == ""


def test_a_name_that_yaml_would_take_for_something_else_is_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = tmp_path / "models.json"
    models.write_text(json.dumps({"null": CONFIG}))
    words = ["plan", "null", "--models", str(models), "--hardware", "8xH100", "--emit", "kubernetes"]
    assert main(words) == 0
    assert '- "null"\n' in capsys.readouterr().out


def test_without_a_layout_that_works_there_is_nothing_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", LARGE, "--hardware", "1xH100", "--emit", "command"]) == 2
    assert "no layout works on these GPUs" in capsys.readouterr().err
