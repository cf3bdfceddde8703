"""Write the data files of shardlint's engines from the reference tables of vLLM's releases.

Usage: python scripts/build_engine_tables.py REFERENCE_DIR

REFERENCE_DIR holds `vllm-flags-all.json`, `vllm-flags.json` and `vllm-architectures.json` (facts taken from vLLM's
source, release by release). One row stands on a line, so that a new release shows as the lines that it changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shardlint.deployment import KNOBS

Row = dict[str, Any]
DATA = Path(__file__).resolve().parent.parent / "src" / "shardlint" / "engines" / "vllm" / "data"

SWITCHES = {  # store_true in the source; the others without a type are booleans with a --no- form, or texts
    "--aggregate-engine-logging", "--data-parallel-multi-port-external-lb", "--disable-async-output-proc",
    "--disable-log-stats", "--disable-mm-preprocessor-cache", "--enable-multimodal-encoder-data-parallel",
    "--enable-reasoning", "--expand-tools-even-if-tool-choice-none", "--fail-on-environ-validation", "--grpc",
    "--headless", "--speculative-disable-mqa-scorer", "--use-v2-block-manager", "--worker-use-ray",
}  # fmt: skip
UNTYPED_BOOLEANS = {
    "--disable-cascade-attn", "--disable-log-requests", "--disable-logprobs-during-spec-decoding",
    "--enable-log-requests", "--enable-lora", "--enable-prompt-adapter", "--eplb-log-balancedness",
}  # fmt: skip
FRONT_END_TEXTS = {  # lists in their class, one word on the command line (`_customize_cli_kwargs`)
    "--allowed-headers", "--allowed-methods", "--allowed-origins", "--middleware", "--disable-access-log-for-endpoints",
}  # fmt: skip
SIZES = {  # `human_readable_int_args`, since 0.8.5
    "--max-num-batched-tokens", "--max-num-scheduled-tokens", "--kv-cache-memory-bytes",
    "--safetensors-prefetch-block-size", "--max-num-queued-tokens",
}  # fmt: skip
SECRET = {"--api-key", "--hf-token"}
VALUES = json.loads((Path(__file__).resolve().parent / "vllm_values.json").read_text(encoding="utf-8"))
"""What `scripts/record_values.py` was told by one release."""
CLOSED = {  # literal types: argparse refuses any other word
    "--all2all-backend", "--runner", "--convert", "--task", "--moe-backend", "--kv-cache-dtype",
}  # fmt: skip
CHOICES: dict[str, list[list[Any]]] = {
    "--dtype": [[None, None, ["auto", "bfloat16", "float", "float16", "float32", "half"]]],
    "--mm-encoder-tp-mode": [[None, None, ["data", "weights"]]],
    "--max-lora-rank": [
        [None, "0.7.3", [8, 16, 32, 64, 128, 256]],
        ["0.8.5.post1", "0.11.0", [8, 16, 32, 64, 128, 256, 320, 512]],
        ["0.11.2", None, [1, 8, 16, 32, 64, 128, 256, 320, 512]],
    ],
}


INSTEAD = {  # what does the same now, for flags that are gone, other engines' flags, and short names spelled long
    "--tp": "--tensor-parallel-size",
    "--tp-size": "--tensor-parallel-size",
    "--tensor-parallel-degree": "--tensor-parallel-size",
    "--pp": "--pipeline-parallel-size",
    "--pp-size": "--pipeline-parallel-size",
    "--dp": "--data-parallel-size",
    "--dp-size": "--data-parallel-size",
    "--ep": "--enable-expert-parallel",
    "--ep-size": "--enable-expert-parallel",
    "--expert-parallel-size": "--enable-expert-parallel",
    "--dcp": "--decode-context-parallel-size",
    "--context-parallel-size": "--decode-context-parallel-size",
    "--context-length": "--max-model-len",
    "--mem-fraction-static": "--gpu-memory-utilization",
    "--model-path": "--model",
    "--task": "--runner",
    "--speculative-model": "--speculative-config.model",
    "--num-speculative-tokens": "--speculative-config.num_speculative_tokens",
    "--speculative-draft-tensor-parallel-size": "--speculative-config.draft_tensor_parallel_size",
    "--guided-decoding-backend": "--structured-outputs-config.backend",
    "--worker-use-ray": "--distributed-executor-backend",
    "--engine-use-ray": "--distributed-executor-backend",
    "--max-seq-len-to-capture": "--max-cudagraph-capture-size",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    "--rope-scaling": "--hf-overrides",
    "--rope-theta": "--hf-overrides",
    "--enable-reasoning": "--reasoning-parser",
    "--num-redundant-experts": "--eplb-config.num_redundant_experts",
    "--eplb-window-size": "--eplb-config.window_size",
    "--disable-mm-preprocessor-cache": "--mm-processor-cache-gb",
    "--enable-multimodal-encoder-data-parallel": "--mm-encoder-tp-mode",
    "--override-pooler-config": "--pooler-config",
}


def kind_of(name: str, flag: Mapping[str, Any]) -> str:
    """How many words a flag takes and how they are read (`shardlint.engines.tables.Kind`)."""
    declared = flag["type"] or ""
    if name == "--max-model-len":
        return "length"
    if name in SIZES:
        return "size"
    if name in SWITCHES:
        return "switch"
    if name in UNTYPED_BOOLEANS or declared in ("bool", "bool | None"):
        return "bool"
    if declared == "bool | str | None":
        return "optional"
    if name not in FRONT_END_TEXTS and ("list[" in declared or declared.startswith("set[")) and "dict[" not in declared:
        return "list"
    return scalar_kind(declared)


def scalar_kind(declared: str) -> str:
    """The kind of a flag with exactly one value, from its declared type."""
    plain = declared.removesuffix(" | None").removeprefix("Optional[").removesuffix("]")
    if plain in ("int", "float"):
        return plain
    if plain == "MaxLoRARanks":
        return "int"
    if plain.endswith(("Config", "ConfigArgs")) and "|" not in plain:
        return "object"
    if plain.startswith("dict[") and "|" not in plain:
        return "json"
    return "str"


def flag_row(name: str, flag: Mapping[str, Any], noted: Mapping[str, Any], versions: list[str]) -> Row:
    """One flag of the table; what is as usual is left out."""
    row: Row = {"name": name, "kind": kind_of(name, flag)}
    knob = name.removeprefix("--").replace("-", "_")
    if knob in KNOBS:
        row["knob"] = knob
    if flag["first_version"] != versions[0]:
        row["since"] = flag["first_version"]
    if flag["last_version"] is not None:
        row["until"] = flag["last_version"]
    if "None" in (flag["type"] or "") or (flag["type"] or "").startswith(("Optional", "nullable", "optional")):
        row["nullable"] = True
    if (flag["config_field"] or "").startswith(("FrontendArgs", "BaseFrontendArgs")) or name in SECRET:
        row["hidden"] = True
    row |= {key: value for key, value in extras(name, flag, noted, versions).items() if value}
    return row


def extras(name: str, flag: Mapping[str, Any], noted: Mapping[str, Any], versions: list[str]) -> Row:
    """Further spellings, the defaults of knobs, and closed lists of values."""
    is_knob = name.removeprefix("--").replace("-", "_") in KNOBS
    return {
        "spellings": spellings(name, flag["names"], flag["last_version"] or versions[-1], versions[-1]),
        "default": [[part["since"], part["value"]] for part in flag["defaults"]] if is_knob else None,
        "choices": CHOICES.get(name) or choices(noted if name in CLOSED else {}, versions[-1]) or told_choices(name),
        "keys": told_keys(name),
    }


OPTIMIZATION_LEVEL = "--optimization-level"
SHORT_OPTIMIZATION_LEVEL = ["-O", "0.12.0", None]  # `parse_args` writes -O3, -O=3 and -O 3 so before argparse sees them


def spellings(name: str, spans: Iterable[Mapping[str, Any]], last: str, newest: str) -> list[list[Any]]:
    """Every other spelling with the releases that know it: [text, since, until or null]."""
    found: dict[str, list[Any]] = {}
    for span in spans:
        for text in span["value"]:
            if text != name:
                found.setdefault(text, [text, span["since"], None])[2] = span["until"]
    if name == OPTIMIZATION_LEVEL:
        return [SHORT_OPTIMIZATION_LEVEL]
    return [[text, since, None if until in (last, newest) else until] for text, since, until in found.values()]


def told_choices(name: str) -> list[list[Any]]:
    """The closed list of values of the release that was asked."""
    values = VALUES["choices"].get(name)
    return [[VALUES["version"], None, values]] if values else []


def told_keys(name: str) -> Row:
    """The keys of a JSON value in the release that was asked, `inner.key` for those of an object in it."""
    found = {"": VALUES["keys"].get(name, {})}
    found |= {whole[len(name) + 1 :]: keys for whole, keys in VALUES["keys"].items() if whole.startswith(f"{name}.")}
    names = {f"{part}.{key}".lstrip("."): words for part, keys in found.items() for key, words in keys.items()}
    return {"since": VALUES["version"], "names": names} if names else {}


def choices(noted: Mapping[str, Any], newest: str) -> list[list[Any]]:
    """The closed list of values by release: [since, until or null, values]."""
    return [
        [part["since"], None if part["until"] == newest else part["until"], part["values"]]
        for part in noted.get("values_by_version", ())
    ]


def flags_document(reference: Path) -> tuple[Row, list[Row]]:
    everything = json.loads((reference / "vllm-flags-all.json").read_text(encoding="utf-8"))
    noted = json.loads((reference / "vllm-flags.json").read_text(encoding="utf-8"))["flags"]
    versions = everything["_meta"]["versions"]
    head = {
        "versions": versions,
        "negations_since": "0.8.5.post1",
        "pairs_since": "0.33.0",
        "dotted_since": "0.9.2",
        "bare_booleans_since": "0.9.2",
        "human_sizes_since": "0.8.5.post1",
        "auto_length_since": "0.14.1",
        "objects_since": "0.12.0",
        "instead": INSTEAD,
    }
    rows = [flag_row(name, flag, noted.get(name, {}), versions) for name, flag in everything["flags"].items()]
    rows.append({"name": "--help", "kind": "switch", "hidden": True, "spellings": [["-h", None, None]]})
    return head, rows


def architecture_rows(reference: Path) -> tuple[Row, list[Row]]:
    document = json.loads((reference / "vllm-architectures.json").read_text(encoding="utf-8"))
    versions = document["_meta"]["versions_sampled"]
    rows = [architecture_row(name, facts) for name, facts in sorted(document["architectures"].items())]
    return {"versions": versions}, rows


def architecture_row(name: str, facts: Mapping[str, Any]) -> Row:
    """[name, ranges], a range being [since, until or null, supports PP], its kinds where they hold, and what it can."""
    support = facts["supports_pp"]
    ranges = support.get("ranges") or [[facts["first_version"], facts["last_version"], support["at_last"]]]
    row: Row = {"name": name, "pp": [[since, None if until == "0.33.0" else until, pp] for since, until, pp in ranges]}
    for key in ("is_moe", "is_hybrid", "is_attention_free", "is_multimodal", "uses_mla"):
        if facts[key] is not False:
            row[key.removeprefix("is_").removeprefix("uses_")] = facts[key]
    if VALUES["classes"].get(name, "unknown") != "unknown":
        row["can"] = VALUES["classes"][name]
    return row


def write(path: Path, head: Row, key: str, rows: Iterable[Row]) -> None:
    """One JSON document, a row to a line."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    lines = ",\n".join(json.dumps(row, **compact) for row in rows)  # type: ignore[arg-type]
    start = json.dumps(head, **compact)[:-1]  # type: ignore[arg-type]
    path.write_text(f'{start},"{key}":[\n{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    reference = Path(sys.argv[1])
    write(DATA / "flags.json", *_keyed(flags_document(reference), "flags"))
    head, rows = architecture_rows(reference)
    lines = [json.dumps(head), *(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)]
    (DATA / "architectures.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (DATA / "model_types.txt").write_text("\n" + "\n".join(VALUES["model_types"]) + "\n", encoding="utf-8")


def _keyed(document: tuple[Row, list[Row]], key: str) -> tuple[Row, str, list[Row]]:
    return document[0], key, document[1]


if __name__ == "__main__":
    main()
