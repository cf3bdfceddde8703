"""The table of families says how far shardlint is from what was recorded, and where nothing was."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "family_table.py"
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 2,
    "vocab_size": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
BUILT = 2 * (2 * 128 * 64 + 64 + 2 * (20 * 16 * 64 + 3 * 96 * 64 + 2 * 64 + 2 * 16))
KEPT = 2 * 2 * 2 * 16 * 2


def row(tmp_path: Path, architecture: str, *records: dict[str, Any], config: dict[str, Any] = CONFIG) -> str:
    """The last line that names a class, in the table made of these records of one rank."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    case = {"config_path": "config.json", "args": [], "gpus": 1, "deep": list(records)}
    (tmp_path / "ranks.jsonl").write_text(json.dumps(case) + "\n")
    command = [sys.executable, str(SCRIPT), str(tmp_path / "ranks.jsonl"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line for line in run.stdout.splitlines() if f"`{architecture}`" in line][-1]


def record(**other: Any) -> dict[str, Any]:
    kept = {"bytes_per_token_if_all_full": KEPT}
    return {"dp": 0, "pp": 0, "tp": 0, "param_bytes": BUILT, "layers": [0, 2], "kv": kept, **other}


@pytest.mark.parametrize(
    ("other", "figures"),
    [
        ({}, "1 | 1 | 0 | 0 | 0 |"),
        ({"param_bytes": BUILT * 2}, "1 | 1 | 50.00% | 0 | 0 |"),
        ({"param_bytes": BUILT * 100001 // 100000}, "1 | 1 | < 0.01% | 0 | 0 |"),
        ({"layers": [0, 1]}, "1 | 1 | 0 | 1 | 0 |"),
        ({"kv": {"bytes_per_token_if_all_full": KEPT + 1}}, "1 | 1 | 0 | 0 | 1 |"),
        ({"tp": 1}, "1 | 1 | 1 rank without a figure | 1 | 1 |"),
    ],
    ids=["equal", "bytes", "few bytes", "layers", "cache", "no such rank"],
)
def test_a_difference_shows_in_its_column(other: dict[str, Any], figures: str, tmp_path: Path) -> None:
    assert row(tmp_path, "Qwen3ForCausalLM", record(**other)).endswith(figures)


def test_a_family_without_records_says_so(tmp_path: Path) -> None:
    assert "none yet" in row(tmp_path, "GemmaForCausalLM", record())


def test_a_class_that_is_not_described_is_named(tmp_path: Path) -> None:
    config = CONFIG | {"architectures": ["NobodysForCausalLM"]}
    assert "Not described" in row(tmp_path, "NobodysForCausalLM", record(), config=config)
