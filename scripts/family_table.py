"""Print, as Markdown, every family of models with the largest error of its figures against vLLM's own.

Usage: python scripts/family_table.py RANKS_JSONL CONFIGS_DIR > docs/families.md

Each line of RANKS_JSONL holds the arguments of one `vllm serve`, the path of a config.json from CONFIGS_DIR, and
`deep`: what vLLM itself built on some ranks (bytes of parameters, layers, bytes of KV cache for a token).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import shardlint
from shardlint.architectures import FAMILIES, Family
from shardlint.facts.geometry import read

HEAD = """\
# Families

Made by `python scripts/family_table.py RANKS_JSONL CONFIGS_DIR > docs/families.md`.

Every class of models whose weights are described, and how far shardlint's bytes of parameters are from those that
vLLM 0.33.0 built itself, over all ranks that were recorded of it: plain and quantised checkpoints under tensor,
pipeline, data and expert parallelism. Layers and KV bytes per token count as wrong unless they are equal. "none yet"
means that the family is described from its source and that no rank of it was recorded; nothing measured says that its
bytes are right.
"""


class Measured(NamedTuple):
    """One rank: what vLLM built and what shardlint says. `error` is relative, None where shardlint gives no figure."""

    architecture: str
    model: str
    error: float | None
    layers_differ: bool
    cache_differs: bool


def main(ranks: Path, configs: Path) -> None:
    """Print the table."""
    measured = [rank for case in _lines(ranks) for rank in _measure(case, configs)]
    print(HEAD)
    print("| class | what it covers | models | ranks | largest error | layers wrong | KV wrong |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for architecture, family in sorted(FAMILIES.items()):
        print(_row(architecture, _covers(family), [rank for rank in measured if rank.architecture == architecture]))
    print(f"| all {len(FAMILIES)} |  {_figures([rank for rank in measured if rank.architecture in FAMILIES])} |")
    others = [rank for rank in measured if rank.architecture not in FAMILIES]
    if others:
        names = ", ".join(sorted({f"`{rank.architecture}`" for rank in others}))
        print(f"\nNot described, so without a figure: {names} ({_number(len(others), 'recorded rank')}).")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _measure(case: Mapping[str, Any], configs: Path) -> Iterator[Measured]:
    """The recorded ranks of one start beside shardlint's."""
    records = [record for record in case["deep"] or [] if record.get("param_bytes")]
    if not records:
        return
    config = json.loads((configs / case["config_path"]).read_text(encoding="utf-8"))
    side_files = {
        name: json.loads((configs / path).read_text(encoding="utf-8"))
        for name, path in case.get("extra_paths", {}).items()
    }
    layout = shardlint.lay_out(
        ["vllm", "serve", "model", *case["args"]],
        config=config,
        side_files=side_files,
        env=case.get("env"),
        gpus_per_node=case["gpus"],
        nodes=_nodes(case["args"]),
    )
    ranks = {(r.data_parallel_rank, r.pipeline_parallel_rank, r.tensor_parallel_rank): r for r in layout.ranks}
    for record in records:
        rank = ranks.get((record["dp"], record["pp"], record["tp"]))
        yield _beside(rank, record, read(config).architecture, case["config_path"])


def _beside(rank: Any, record: Mapping[str, Any], architecture: str, model: str) -> Measured:
    if rank is None or rank.weight_bytes is None:
        return Measured(architecture, model, None, layers_differ=True, cache_differs=True)
    built, kept = record["param_bytes"], (record.get("kv") or {}).get("bytes_per_token_if_all_full")
    return Measured(
        architecture,
        model,
        abs(rank.weight_bytes - built) / built,
        layers_differ=bool(record.get("layers")) and tuple(rank.layers or ()) != tuple(record["layers"]),
        cache_differs=bool(kept) and rank.kv_bytes_per_token_if_all_full != kept,
    )


def _nodes(words: Sequence[str]) -> int:
    for at, word in enumerate(words):
        if word in ("--nnodes", "-n"):
            return int(words[at + 1])
        if word.startswith("--nnodes="):
            return int(word.removeprefix("--nnodes="))
    return 1


def _covers(family: Family) -> str:
    """What the family's own first line says, the tower's behind that of the language model."""
    text, tower = getattr(family, "text", None), getattr(family, "tower", None)
    if text is None or tower is None:
        return _said(family)
    return " ".join(filter(None, (_said(text), f"Tower: {_said(tower)}")))


def _said(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().partition("\n\n")[0].replace("\n    ", " ")


def _row(architecture: str, covers: str, ranks: Sequence[Measured]) -> str:
    return f"| `{architecture}` | {covers} {_figures(ranks)} |"


def _figures(ranks: Sequence[Measured]) -> str:
    if not ranks:
        return "| 0 | 0 | none yet |  | "
    models = len({rank.model for rank in ranks})
    layers, caches = (sum(wrong) for wrong in zip(*((r.layers_differ, r.cache_differs) for r in ranks), strict=True))
    return f"| {models} | {len(ranks)} | {_largest(ranks)} | {layers} | {caches}"


def _largest(ranks: Sequence[Measured]) -> str:
    errors = [rank.error for rank in ranks if rank.error is not None]
    missing = len(ranks) - len(errors)
    largest = max(errors, default=None)
    said = [] if largest is None else ["0" if largest == 0 else f"{largest:.2%}" if largest >= 5e-5 else "< 0.01%"]
    return ", ".join([*said, *([f"{_number(missing, 'rank')} without a figure"] if missing else [])])


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
