"""Makes the model tables of `src/shardlint/facts/data/` from collected config.json files.

Usage: python scripts/build_catalogue.py SHARED_MODELS_DIR

`models.jsonl`: one row for a config.json, its structural facts under their own keys, long lists packed.
`models_second_hand.tsv`: heads, layers and sizes of many more models, as llmfit (MIT) collected them.
Only facts go in: numbers, flags and short names of structure; no tokens, prompts or prose.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from shardlint.facts.class_defaults import class_of
from shardlint.facts.packing import pack
from shardlint.facts.readers import EXPERT_NAMES, FALCON
from shardlint.facts.second_hand import COLUMNS

DATA = Path(__file__).parent.parent / "src" / "shardlint" / "facts" / "data"
NO_STRUCTURE = re.compile(
    r"token_id|token_index|_token$|^tokens|token_ids$|dropout|drop_|pdrop|_p$|eps$|epsilon|^initializer|init_|_init|^use_cache$|"
    r"^output_(?!gate|dim)|return_dict|id2label|label2id|num_labels|problem_type|chunk_size_feed|transformers_version|"
    r"torchscript|pruned|loss|_coef|coefficient|layerdrop|^mask_|jitter|finetuning|^is_decoder|temperature|penalty|"
    r"name_or_path|auto_map|^_|tokenizer|prefix$|task_specific|beam|do_sample|top_p|max_length|min_length|repetition|"
    r"suppress|bad_words|early_stopping|no_repeat|remove_invalid|return_sequences|use_bfloat16|decoder_start|"
    r"placeholder|tile_tag|^dataset|exllama|damp|observer|block_structure|^vocoder|^spkr|^sampling|^lang_|"
    r"^producer_|attn_implementation|gradient|cache_implementation|^language$|prompt|diversity"
)
KEPT_ANYWAY = frozenset(
    ("num_experts_per_token", "experts_per_token", "model_max_length", "sparse_init_block", "drop_vision_last_layer")
)
"""Structure, though the names look otherwise."""
STRUCTURAL_WORD = re.compile(r"[\w.*:#/^$|()\[\]\\+?,<>= -]{0,200}")
GENERATION_ONLY = frozenset(("top_k", "prefix", "length", "temperature"))
DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
WHOLE_COUNTS = ("exact", "exact if lm_head is not tied (the checkpoint stores lm_head)")
NOT_SERVED = frozenset(("vits", "wav2vec2", "wav2vec2-bert", "hubert", "aesthetics_predictor", "speck"))
KV_HEADS_GUESSED = FALCON | {"nemotron-nas", "step3p5", "step3p7", "chatglm", "dbrx", "gpt_bigcode", "mpt", "unknown"}
EXPERTS_WRONG = frozenset(("llama4",))
VOCABULARY_WRONG = frozenset(("whisper",))


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def structural(value: Any) -> Any:
    """The part of a config that has a bearing on the shapes."""
    if isinstance(value, Mapping):
        return {key: structural(item) for key, item in value.items() if kept(key, item)}
    return [structural(item) for item in value] if isinstance(value, list) else value


def kept(key: str, value: Any) -> bool:
    if isinstance(value, str) and not STRUCTURAL_WORD.fullmatch(value):
        return False
    if key in GENERATION_ONLY or (isinstance(value, float) and not isfinite(value)):
        return False
    return key in KEPT_ANYWAY or "." in key or not NO_STRUCTURE.search(key)


def weight_bytes(entry: Mapping[str, Any], params: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of the checkpoint: of its index, else of the published count where nothing is quantised."""
    published = params.get("published") or {}
    relation = published.get("relation") or ""
    if total := entry.get("total_size_bytes"):
        return {"weight_bytes_with_mtp" if "MTP" in relation else "weight_bytes": total}
    text = config.get("text_config") or {}
    dtype = config.get("torch_dtype") or config.get("dtype") or text.get("torch_dtype") or text.get("dtype")
    quantised = entry.get("quant_method") or "quantization_config" in config
    if relation in WHOLE_COUNTS and dtype in DTYPE_BYTES and not quantised:
        return {"weight_bytes": published["count"] * DTYPE_BYTES[dtype]}
    return {}


def side_files(folder: Path, file: str, config: Mapping[str, Any]) -> dict[str, Any]:
    side = folder / "hf_quant" / Path(file).name
    if not side.exists() or "quantization_config" in config:
        return {}
    return {"side_files": {"hf_quant_config.json": pack(structural(json.loads(side.read_text())))}}


def source_of(entry: Mapping[str, Any]) -> str:
    return _source_of(entry).replace("pypi:", "PyPI package ")


def _source_of(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "verbatim" and entry.get("hub_verified_for_this_id"):
        return f"config.json of the model ({entry['source']}), equal to the hub's file"
    if entry["kind"] == "reconstructed":
        return f"rebuilt from evidence, no file of the hub: {entry['source'].removeprefix('reconstructed: ')}"
    return f"{entry['kind']}: {entry['source']}"


def catalogue(folder: Path) -> Iterator[dict[str, Any]]:
    counts = {row["model_id"]: row for row in read_rows(folder / "params.jsonl")}
    for entry in sorted(read_rows(folder / "index.jsonl"), key=lambda row: str(row["model_id"]).lower()):
        if entry["model_id"].startswith("local/"):
            continue
        config = json.loads((folder / entry["file"]).read_text())
        row = {"id": entry["model_id"], "source": source_of(entry), "config": pack(structural(config))}
        row |= weight_bytes(entry, counts.get(entry["model_id"], {}), config)
        yield row | side_files(folder, entry["file"], config)


def second_hand(folder: Path) -> Iterator[list[str]]:
    seen = set()
    for row in sorted(read_rows(folder / "llmfit_geometry.jsonl"), key=lambda row: row["name"]):
        architecture = row["architecture"]
        geometry = row.get("num_attention_heads") and row.get("num_hidden_layers")
        if not geometry or architecture in NOT_SERVED or row["name"].lower() in seen or not row["name"].isascii():
            continue
        seen.add(row["name"].lower())
        values = {"model_type": architecture if architecture != "unknown" else "", "parameters": row["parameters_raw"]}
        values |= {name: row.get(name) for name in ("num_attention_heads", "num_hidden_layers", "hidden_size")}
        values["num_key_value_heads"] = None if architecture in KV_HEADS_GUESSED else row.get("num_key_value_heads")
        values["vocab_size"] = None if architecture in VOCABULARY_WRONG else row.get("vocab_size")
        values["num_experts"], values["num_experts_per_tok"] = experts(row)
        yield [row["name"], *("" if values[column] is None else str(values[column]) for column in COLUMNS)]


def experts(row: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Experts and those of a token; a missing number means dense only where the class can have none."""
    architecture = row["architecture"]
    if architecture in EXPERTS_WRONG:
        return None, None
    if row.get("num_experts"):
        return row["num_experts"], row.get("active_experts")
    return (0, 0) if is_dense(architecture) else (None, None)


def is_dense(model_type: str) -> bool:
    config_class = class_of(model_type)
    if config_class is None:
        return False
    if text := config_class.parts.get("text_config"):
        return is_dense(text)
    return not any(name in config_class.defaults or name in config_class.spellings for name in EXPERT_NAMES)


def main(folder: Path) -> None:
    lines = [json.dumps(row, separators=(", ", ": ")) for row in catalogue(folder)]
    write("models.jsonl", lines)
    write("models_second_hand.tsv", ["\t".join(("id", *COLUMNS)), *("\t".join(row) for row in second_hand(folder))])


def write(name: str, lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    (DATA / name).write_text(text)
    print(f"{name}: {len(lines)} rows, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
