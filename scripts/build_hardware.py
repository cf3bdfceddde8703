"""Makes the hardware tables of `src/shardlint/facts/data/` from the reference data.

Usage: python scripts/build_hardware.py REFERENCE_DIR   (with gpus.jsonl, machines.jsonl, gpu_aliases.json)
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shardlint.facts.accelerators import fold

DATA = Path(__file__).parent.parent / "src" / "shardlint" / "facts" / "data"
WORDS = {"pcie": "PCIe", "sxm": "SXM", "server": "Server", "workstation": "Workstation", "ada": "Ada", "arc": "Arc"}
NAMES = {"quadro": "Quadro", "intel": "Intel", "aws": "AWS", "trainium": "Trainium", "inferentia2": "Inferentia2"}
NAMES |= {"trainium2": "Trainium2", "gaudi2": "Gaudi2", "gaudi3": "Gaudi3"} | WORDS
ROW = {
    "vendor": "vendor",
    "memory_bytes": "memory_bytes",
    "memory_marketing_gb": "memory_gb",
    "link": "link",
    "link_gb_s": "link_gb_per_second",
    "largest_link_domain": "link_domain",
    "compute_capability": "compute_capability",
    "memory_bandwidth_gb_s": "memory_bandwidth_gb_per_second",
    "bf16_native": "bf16_native",
    "fp8": "fp8",
    "fp4": "fp4",
    "notes": "notes",
}
MACHINE = {
    "cloud": "cloud",
    "gpu": "gpu",
    "gpus": "gpus",
    "link": "link",
    "link_domain": "link_domain",
    "host_memory_gib": "host_memory_gib",
    "network_gbit_s": "network_gbit_per_second",
    "gpu_fraction": "gpu_fraction",
    "notes": "notes",
    "source": "source",
}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (DATA / name).write_text(text)
    print(f"{name}: {text.count(chr(10))} rows, {len(text.encode()):,} bytes")


def public(source: str) -> str:
    """The source in words that mean something to a reader who has only the public repositories."""
    source = re.sub(r"labels counted in [^;]*", "node labels in public manifests", source)
    return re.sub(r" \(mirror HEAD\)| mirrors?\b", "", source).replace("corpus manifest", "public manifest")


def shown(identifier: str) -> str:
    """h100-sxm5-80gb -> H100 SXM5 80GB."""
    return " ".join(NAMES.get(word, word.upper()) for word in identifier.split("-"))


def accelerator(row: dict[str, Any]) -> dict[str, Any]:
    facts = {ours: row[theirs] for theirs, ours in ROW.items() if row.get(theirs) is not None}
    source = f"{public(row['source'])}; memory: {row['memory_basis']}"
    if row.get("uncertain"):
        source += f"; uncertain: {'; '.join(row['uncertain'])}"
    return {"id": row["id"], "name": shown(row["id"]), **facts, "source": public(source)}


def spellings(cards: list[dict[str, Any]], aliases: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Every spelling, folded; where several fold to one, all that any of them may mean."""
    meanings: dict[str, list[str]] = {}
    likely: dict[str, set[str | None]] = {}
    for card in cards:
        for name in (card["id"], *card["names"], *card.get("ambiguous_names", ())):
            meanings.setdefault(fold(name), []).append(card["id"])
        if bare := re.fullmatch(r"rtx-([345]0\d0)", card["id"]):
            meanings.setdefault(bare[1], []).append(card["id"])
    for name, meant in aliases.items():
        meanings.setdefault(fold(name), []).extend(meant["ids"])
        if len(meant["ids"]) > 1 or meant["likely"] is None:
            likely.setdefault(fold(name), set()).add(meant["likely"])
    for name in sorted(meanings):
        wide = likely.get(name, {None})
        first = next(iter(wide)) if len(wide) == 1 else None
        ids = sorted(set(meanings[name]), key=lambda identifier: (identifier != first, identifier))
        yield {"id": name, "accelerators": ids, "likely": first if len(ids) > 1 else ids[0]}


def machines(rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    taken = set()
    for row in rows:
        facts = {ours: row[theirs] for theirs, ours in MACHINE.items() if row.get(theirs) is not None}
        if facts.get("link") == "none" and (facts.get("gpus") or 0) > 1:
            facts["link"] = "pcie"
        facts["source"] = public(facts["source"])
        yield {"id": row["name"].lower(), "name": row["name"], **facts}
        taken.add(row["name"].lower())
    for row in rows:
        short = [row["name"].removeprefix("Standard_")] if row["cloud"] == "azure" else []
        for alias in sorted({name.lower() for name in (*row.get("aliases", ()), *short)}):
            if alias not in taken and not alias.startswith("ml."):
                taken.add(alias)
                yield {"id": alias, "is": row["name"].lower()}


def main(reference: Path) -> None:
    cards = read(reference / "gpus.jsonl")
    write("accelerators.jsonl", map(accelerator, cards))
    aliases = json.loads((reference / "gpu_aliases.json").read_text())
    write("accelerator_names.jsonl", spellings(cards, aliases))
    write("machines.jsonl", machines(read(reference / "machines.jsonl")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
