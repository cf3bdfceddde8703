"""`shardlint model`: numbers with their places, parts that add up, and why a degree is not legal."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardlint.front.main import main

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 3,
    "vocab_size": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
PARAMETERS = {
    "embedding": 128 * 64,
    "attention": 3 * ((8 + 2 + 2) * 16 * 64 + 64 * 8 * 16),
    "mlp": 3 * 3 * 96 * 64,
    "norms": 3 * (2 * 64 + 2 * 16) + 64,
    "lm_head": 128 * 64,
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def kept(config: dict[str, Any], folder: str = "tiny") -> str:
    place = Path(folder)
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(config, indent=1))
    return folder


def described(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["model", *words, "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def by_value(lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {line["value"]: line for line in lines}


def test_parts_hold_the_parameters_of_the_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    model = described(capsys, kept(CONFIG))
    assert {part["name"]: part["parameters"] for part in model["parts"]} == PARAMETERS
    assert model["parameters"] == sum(PARAMETERS.values())
    assert model["weight_bytes"] == 2 * model["parameters"] == sum(part["bytes"] for part in model["parts"])


def test_the_cache_is_counted_per_layer_and_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    model = described(capsys, kept(CONFIG))
    per_layer = 2 * 2 * 16 * 2  # keys and values, heads, width, bytes
    assert model["caches"] == [{"layers": 3, "bytes_per_token": per_layer, "window": None}]
    assert model["kv_bytes_per_token"] == 3 * per_layer


@pytest.mark.parametrize("word", ["tiny", "./tiny", "deep/er/tiny"])
def test_a_number_of_a_folder_has_its_line_and_column(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = described(capsys, kept(CONFIG, word))
    line = 1 + json.dumps(CONFIG, indent=1).splitlines().index(' "hidden_size": 64,')
    assert f"config.json:{line}:" in model["facts"]["hidden_size"]["where"]


def test_a_number_of_the_catalogue_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    model = described(capsys, "Qwen/Qwen3-8B")
    assert model["facts"]["hidden_size"] == {"value": 4096, "where": "catalogue: hidden_size of Qwen/Qwen3-8B"}
    assert model["origin"].startswith("catalogue: ")
    assert model["weight_bytes"] == model["facts"]["weight_bytes_stated"]["value"]


def test_each_tensor_parallel_size_that_is_not_legal_has_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    lines = by_value(described(capsys, kept(CONFIG))["tensor_parallel_size"])
    assert [value for value, line in lines.items() if line["legal"]] == [1, 2, 4, 8]
    assert set(lines) == {*range(1, 17), 32, 64}
    assert all(line["reasons"] for line in lines.values() if not line["legal"])
    assert "8 query heads do not divide by 3" in lines[3]["reasons"]
    assert lines[4]["kv_bytes_per_token"] == lines[2]["kv_bytes_per_token"]  # two KV heads are copied


def test_a_stage_without_layers_is_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    lines = by_value(described(capsys, kept(CONFIG))["pipeline_parallel_size"])
    assert [value for value, line in lines.items() if line["legal"]] == [1, 2, 3]
    assert "holds no layer" in lines[4]["reasons"][0]


def test_a_class_without_pipeline_parallelism_is_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    whisper = CONFIG | {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper"}
    lines = by_value(described(capsys, kept(whisper))["pipeline_parallel_size"])
    assert lines[2]["legal"] is False
    assert lines[2]["reasons"] == ["WhisperForConditionalGeneration has no pipeline parallelism"]


def test_of_a_family_not_described_heads_are_judged_and_the_rest_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    model = described(capsys, kept(CONFIG | {"architectures": ["NobodysForCausalLM"]}))
    lines = by_value(model["tensor_parallel_size"])
    assert "NobodysForCausalLM" in model["unknown"]
    assert "a description of its family" in model["unknown"]
    assert model["parts"] == []
    assert model["parameters"] is None
    assert lines[3]["legal"] is False
    assert lines[2] == lines[2] | {"legal": None, "reasons": [f"not refused by {model['basis']}"]}


def test_the_text_names_place_parts_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", kept(CONFIG)]) == 0
    text = capsys.readouterr().out
    assert "tiny (Qwen3ForCausalLM), from" in text
    assert "GiB" in text
    assert "3  not legal: 8 query heads do not divide by 3; " in text
    assert "\n  not known" not in text


def test_models_are_looked_up_as_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    kept(CONFIG, "shelf/our--model")
    assert described(capsys, "our/model", "--models", "shelf")["facts"]["vocab_size"]["value"] == 128


def test_a_model_that_nobody_knows_ends_the_run_with_what_would_settle_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "nobody/has-this"]) == 2
    assert "shardlint models add nobody/has-this" in capsys.readouterr().err


def test_what_a_hostile_config_says_does_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", kept(CONFIG | {"architectures": ["\x1b[31mX"], "model_type": "\x1b[2J"})]) == 0
    assert "\x1b" not in capsys.readouterr().out
