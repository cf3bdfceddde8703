"""Write the data files of shardlint's vLLM from what was read of its releases.

Usage: python scripts/build_engine_tables.py REFERENCE_DIR

The releases are in `vllm_releases.jsonl` (`scripts/read_releases.py`), what one of them said of itself in
`vllm_values.json` (`scripts/record_values.py`). REFERENCE_DIR holds `vllm-architectures.json`: which classes are
mixtures, hybrids and so on. One row stands on a line, so that a new release shows as the lines that it changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shardlint.deployment import KNOBS

Row = dict[str, Any]
HERE = Path(__file__).resolve().parent
RELEASES = HERE / "vllm_releases.jsonl"
DATA = HERE.parent / "src" / "shardlint" / "engines" / "vllm" / "data"

SECRET = {"--api-key", "--hf-token"}
VALUES = json.loads((HERE / "vllm_values.json").read_text(encoding="utf-8"))
"""What `scripts/record_values.py` was told by one release."""
CLOSED = {  # closed lists that are recorded release by release; those of other flags are of the release that was asked
    "--all2all-backend", "--runner", "--convert", "--task", "--moe-backend", "--kv-cache-dtype", "--dtype",
    "--mm-encoder-tp-mode", "--max-lora-rank",
}  # fmt: skip
KINDS = {  # where older releases take more than the newest kind says, or a text may be read in two ways
    "--limit-mm-per-prompt": "str",  # image=2, until 0.8.4
    "--allowed-origins": "str",
    "--allowed-methods": "str",
    "--allowed-headers": "str",
}
CHECKED_LATER = {"--kv-cache-dtype"}  # argparse takes any word in 0.33.0, and the config refuses those not in the list
RANKS: list[list[Any]] = [  # what LoRAConfig takes, where argparse takes any number
    [None, "0.7.3", [8, 16, 32, 64, 128, 256]],
    ["0.8.0", "0.11.0", [8, 16, 32, 64, 128, 256, 320, 512]],
]
NEGATIONS_SINCE = "0.8.5"
FRONT_END = ("FrontendArgs", "BaseFrontendArgs")


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


class Releases:
    """What `scripts/read_releases.py` read: facts by runs of releases, [since, until or null for the newest, fact]."""

    def __init__(self, text: str) -> None:
        head, *rows = map(json.loads, text.splitlines())
        self.versions: list[str] = head["versions"]
        self.parts: dict[str, dict[str, list[list[Any]]]] = {}
        for row in rows:
            (part,) = row.keys() - {"is"}
            self.parts.setdefault(part, {})[row[part]] = row["is"]

    def runs(self, spans: Iterable[Sequence[Any]], of: Callable[[Any], Any]) -> list[list[Any]]:
        """The runs of releases in which one thing about a fact is the same; left out where that is None."""
        found: list[list[Any]] = []
        for since, until, fact in spans:
            told = of(fact)
            last = found[-1] if found else None
            if last and last[2] == told and self.follows(last[1], since):
                last[1] = until
            elif told is not None:
                found.append([since, until, told])
        return found

    def follows(self, until: str | None, since: str) -> bool:
        return until is not None and self.versions.index(until) + 1 == self.versions.index(since)


def flag_row(name: str, spans: Sequence[Sequence[Any]], releases: Releases) -> Row:
    """One flag of the table; what is as usual is left out."""
    newest = spans[-1][2]
    row: Row = {"name": name, "kind": KINDS.get(name, "bool" if newest["kind"] == "stated" else newest["kind"])}
    knob = name.removeprefix("--").replace("-", "_")
    if knob in KNOBS:
        row["knob"] = knob
    if spans[0][0] != releases.versions[0]:
        row["since"] = spans[0][0]
    if spans[-1][1] is not None:
        row["until"] = spans[-1][1]
    if newest.get("nullable"):
        row["nullable"] = True
    if newest.get("owner") in FRONT_END or name in SECRET:
        row["hidden"] = True
    row |= {key: value for key, value in extras(name, spans, releases).items() if value}
    return row


def extras(name: str, spans: Sequence[Sequence[Any]], releases: Releases) -> Row:
    """Further spellings, the defaults of knobs, closed lists of values, and the first release of `--no-x`."""
    is_knob = name.removeprefix("--").replace("-", "_") in KNOBS
    defaults = releases.runs(spans, lambda fact: [fact["default"]])
    return {
        "negated": negated(spans, releases),
        "spellings": spellings(name, spans, releases),
        "default": [[since, value] for since, _, (value,) in defaults] if is_knob else None,
        "choices": choices(name, spans, releases),
        "keys": told_keys(name),
    }


def choices(name: str, spans: Sequence[Sequence[Any]], releases: Releases) -> list[list[Any]]:
    """The closed lists of values by release: [since, until or null, values]."""
    if name not in CLOSED:
        return told_choices(name)
    of = "known" if name in CHECKED_LATER else "choices"
    lists = releases.runs(spans, lambda fact: fact.get("choices", fact.get(of)))
    return [*(RANKS if name == "--max-lora-rank" else ()), *lists]


def negated(spans: Sequence[Sequence[Any]], releases: Releases) -> str | None:
    """The first release in which a boolean has its --no- form, where it is not the one in which most flags got it."""
    if spans[-1][2]["kind"] != "bool":
        return None
    since: str = next(span[0] for span in spans if span[2]["kind"] == "bool")
    usual = max(spans[0][0], NEGATIONS_SINCE, key=releases.versions.index)
    return since if since != usual else None


OPTIMIZATION_LEVEL = "--optimization-level"
SHORT_OPTIMIZATION_LEVEL = ["-O", "0.12.0", None]  # `parse_args` writes -O3, -O=3 and -O 3 so before argparse sees them


def spellings(name: str, spans: Sequence[Sequence[Any]], releases: Releases) -> list[list[Any]]:
    """Every other spelling with the releases that know it: [text, since, until], null for as long as the flag."""
    if name == OPTIMIZATION_LEVEL:
        return [SHORT_OPTIMIZATION_LEVEL]
    texts = sorted({text for span in spans for text in span[2]["names"]} - {name})
    last = spans[-1][1]
    return [
        [text, since, None if until == last else until]
        for text in texts
        for since, until, _ in releases.runs(spans, partial(_has_name, text))
    ]


def _has_name(text: str, fact: Mapping[str, Any]) -> bool | None:
    return text in fact["names"] or None


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


def flags_document(releases: Releases) -> tuple[Row, list[Row]]:
    head = {
        "versions": releases.versions,
        "negations_since": NEGATIONS_SINCE,
        "pairs_since": "0.33.0",
        "dotted_since": "0.9.0",
        "bare_booleans_since": "0.8.5",
        "human_sizes_since": "0.8.4",
        "auto_length_since": "0.14.0",
        "objects_since": "0.12.0",
        "instead": INSTEAD,
    }
    rows = [flag_row(name, spans, releases) for name, spans in releases.parts["flags"].items()]
    rows.append({"name": "--help", "kind": "switch", "hidden": True, "spellings": [["-h", None, None]]})
    return head, rows


def architecture_rows(releases: Releases, reference: Path) -> tuple[Row, list[Row]]:
    document = json.loads((reference / "vllm-architectures.json").read_text(encoding="utf-8"))["architectures"]
    spans = releases.parts["architectures"]
    return {"versions": releases.versions}, [architecture_row(name, spans[name], document.get(name)) for name in spans]


def architecture_row(name: str, spans: Sequence[Sequence[Any]], facts: Mapping[str, Any] | None) -> Row:
    """[name, ranges], a range being [since, until or null, supports PP], its kinds where they hold, and what it can."""
    row: Row = {"name": name, "pp": spans}
    for key in ("is_moe", "is_hybrid", "is_attention_free", "is_multimodal", "uses_mla"):
        if facts is not None and facts[key] is not False:
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
    releases = Releases(RELEASES.read_text(encoding="utf-8"))
    write(DATA / "flags.json", *_keyed(flags_document(releases), "flags"))
    head, rows = architecture_rows(releases, Path(sys.argv[1]))
    lines = [json.dumps(head), *(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)]
    (DATA / "architectures.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (DATA / "model_types.txt").write_text("\n" + "\n".join(VALUES["model_types"]) + "\n", encoding="utf-8")


def _keyed(document: tuple[Row, list[Row]], key: str) -> tuple[Row, str, list[Row]]:
    return document[0], key, document[1]


if __name__ == "__main__":
    main()
