"""`shardlint show`: the picture, and the documents' numbers under it."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from shardlint.front.main import main

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
EXPERTS = "Qwen/Qwen3-235B-A22B"


def show(tmp_path: Path, command: str, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    script = tmp_path / "serve.sh"
    script.write_text(f"vllm serve {command}\n")
    assert main(["show", str(script), *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("-tp 1", ("KV bytes of a token on a GPU: 128 KiB", "weights on all GPUs: 14.96 GiB")),
        (
            "-tp 2",
            (
                "64 all-reduces in each tp group (after attention and after the MLP of each layer): 64 x 16 MiB",
                "KV bytes of a token on a GPU: 64 KiB",
                "KV bytes of a token over all GPUs of a replica: 128 KiB",
            ),
        ),
        (
            "-tp 16",
            (
                "KV bytes of a token on a GPU: 16 KiB",
                "KV bytes of a token over all GPUs of a replica: 256 KiB",
                "copies of each KV head: 2",
                "64 x 16 MiB for 2048 tokens",
            ),
        ),
        (
            "-pp 2",
            (
                "1 send in each pp group (hidden_states and residual to the next stage): 1 x 32 MiB for 2048 tokens",
                "by batches in flight: 1: 50%, 2: 100%",
            ),
        ),
    ],
)
def test_the_worked_numbers_of_a_small_model(
    tmp_path: Path, flags: str, said: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = show(tmp_path, f"{LLAMA_8B} {flags}", "--hardware", "16xH100", "--derive", capsys=capsys)
    for words in said:
        assert words in out
    assert "T x elements x bytes" in out or flags == "-tp 1"


def test_a_derived_number_is_the_product_of_its_terms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--format", "json", "--requests", "3")
    data = json.loads(show(tmp_path, f"{LLAMA_8B} -tp 2", *words, capsys=capsys))
    by_name = {figure["name"]: figure for figure in data["figures"]}

    def product(figure: dict[str, Any]) -> int:
        return math.prod(int(term["value"]) for term in figure["terms"])

    cache = by_name["KV bytes of a token on a GPU"]
    assert (cache["value"], product(cache)) == ("64 KiB", 64 * 1024)
    logits = by_name["1 all-gather in each tp group (logits of the tokens that are sampled)"]
    assert product(logits) == 3 * 128256 * 2
    assert all(term["symbol"] in logits["formula"] for term in logits["terms"])


def test_the_worked_numbers_of_a_large_model_on_two_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{LLAMA_70B} -tp 8 -pp 2 --nnodes 2 --node-rank 0"
    out = show(tmp_path, command, "--hardware", "2x8xH100", "--derive", capsys=capsys)
    assert out.count("80 all-reduces in each tp group") == 2
    assert "80 x 32 MiB for 2048 tokens" in out
    assert "1 x 64 MiB for 2048 tokens" in out
    assert "2 tensor parallel groups of 8, each inside a node: [0-7], [8-15]" in out
    assert "! 8 pipeline groups of 2, 8 of them cross nodes" in out


def test_without_expert_parallelism_experts_are_told_as_slices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{EXPERTS} -tp 4 -dp 2"
    out = show(tmp_path, command, "--hardware", "8xH100", capsys=capsys)
    assert "1 group of 8 with a slice of every expert on each rank, inside a node: [0-7]" in out
    assert "expert parallel" not in out
    out = show(tmp_path, f"{command} --enable-expert-parallel", "--hardware", "8xH100", capsys=capsys)
    assert "1 expert parallel group of 8, inside a node: [0-7]" in out


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_the_picture_keeps_to_the_width(
    tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = show(tmp_path, f"{EXPERTS} -tp 2 -dp 4 --enable-expert-parallel", "--hardware", "8xH100", capsys=capsys)
    picture = out.split("\n\n")[0].splitlines()
    assert max(map(len, picture)) <= columns
    framed = {len(line) for line in picture if line.startswith(("|", "+"))}
    assert len(framed) == 1
    assert all(f"rank {rank}" in out for rank in range(8))
    assert "experts of each layer on a rank: 16" in out


def test_idle_gpus_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = show(tmp_path, f"{LLAMA_8B} -tp 2", "--hardware", "8xH100", capsys=capsys)
    assert out.count("idle") == 6


def test_large_sizes_have_no_exponent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = show(tmp_path, f"{LLAMA_8B} -tp 2", "--hardware", "2xH100", "--tokens", "1000000000", capsys=capsys)
    assert "64 x 7,812,500 MiB for 1000000000 tokens" in out
    assert not re.search(r"\de[+-]\d", out)


@pytest.mark.parametrize("copies", ["", " -dp 4"])
def test_requests_and_tokens_are_those_of_inspect(
    copies: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--hardware", "4xH100-80GB", "--format", "json")
    figures = json.loads(show(tmp_path, f"{LLAMA_8B} --max-model-len 7000{copies}", *words, capsys=capsys))["figures"]
    by_name = {figure["name"]: figure["value"] for figure in figures}
    main(["inspect", *words, str(tmp_path / "serve.sh")])
    (deployment,) = json.loads(capsys.readouterr().out)["deployments"]
    memory, replicas = deployment["memory"], 4 if copies else 1
    for name, field in (
        ("requests of 7000 tokens at once", "concurrent_requests"),
        ("tokens of KV cache", "kv_cache_tokens"),
    ):
        for where, times in {"each replica": 1, f"all {replicas} replicas": replicas}.items():
            if times > 1 or where == "each replica":
                low, likely, high = (f"{value * times:,}" for value in memory[field].values())
                assert by_name.pop(f"{name} in {where}") == f"about {likely} ({low} to {high})"
    assert not [name for name in by_name if "replicas" in name]


def test_json_has_what_the_text_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--hardware", "8xH100", "--format", "json")
    data = json.loads(show(tmp_path, f"{LLAMA_8B} -tp 8", *words, capsys=capsys))
    (node,) = data["nodes"]
    assert [gpu["rank"] for gpu in node["gpus"]] == list(range(8))
    assert any(figure["name"] == "KV bytes of a token on a GPU" for figure in data["figures"])
    assert set(data["memory"][0]["parts"]) == {"weights", "activations and buffers", "KV cache", "left free"}


class Outside(HTMLParser):
    """Collects what a page would load, and its unclosed elements."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attributes if name in ("src", "href")]


def test_svg_and_page_stand_alone_and_name_every_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page = tmp_path / "layout.svg", tmp_path / "layout.html"
    command = f"{LLAMA_70B} -tp 8 -pp 2 --nnodes 2 --node-rank 0"
    show(tmp_path, command, "--hardware", "2x8xH100", "--svg", str(svg), "--html", str(page), capsys=capsys)
    root = ElementTree.fromstring(svg.read_text())
    namespace = "{http://www.w3.org/2000/svg}"
    description = root.findtext(f"{namespace}desc") or ""
    assert all(f"rank {rank} (PP{rank // 8} TP{rank % 8})" in description for rank in range(16))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for box in root.iter(f"{namespace}rect"):
        assert float(box.get("x", 0)) + float(box.get("width", 0)) <= width
        assert float(box.get("y", 0)) + float(box.get("height", 0)) <= height
    reader = Outside()
    reader.feed(page.read_text())
    assert reader.loaded == []
    assert "80 x 32 MiB" in page.read_text()


def test_names_from_a_manifest_cannot_become_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "compose.yaml"
    manifest.write_text(
        f'services:\n  "<script>alert(1)</script>":\n    image: vllm/vllm-openai:v0.33.0\n    command: --model {LLAMA_8B}\n'
    )
    page = tmp_path / "page.html"
    assert main(["show", str(manifest), "--hardware", "1xH100", "--html", str(page)]) == 0
    capsys.readouterr()
    assert "<script>" not in page.read_text()


def test_what_cannot_be_drawn_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(f'vllm serve {LLAMA_8B} -tp "$WAYS"\n')
    assert main(["show", str(script)]) == 2
    assert "the layout is not known" in capsys.readouterr().err
    script.write_text(f"vllm serve {LLAMA_8B}\n")
    assert main(["show", str(script), "--svg", str(tmp_path / "no" / "folder.svg")]) == 2
    assert "folder.svg" in capsys.readouterr().err


def test_words_of_the_manifest_that_a_terminal_or_a_page_acts_on_are_escaped_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = r"</title><script>\e[31m\u202e\n"
    args = r'["meta-llama/Llama-3.1-8B-Instruct", "-tp", "2", "--quantization", "f\e[31m<b>p8"]'
    container = f"{{image: vllm/vllm-openai:v0.33.0, args: {args}}}"
    Path("a.yaml").write_text(f'kind: Pod\nmetadata: {{name: "{name}"}}\nspec: {{containers: [{container}]}}\n')
    words = ["a.yaml", "--hardware", "2xH100", "--derive", "--html", "a.html", "--svg", "a.svg"]
    assert main(["show", *words]) == 0
    for text in (capsys.readouterr().out, Path("a.html").read_text(), Path("a.svg").read_text()):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert "<script" not in Path("a.html").read_text() + Path("a.svg").read_text()
    assert "<b>" not in Path("a.html").read_text()
