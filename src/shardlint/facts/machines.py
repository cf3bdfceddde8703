"""Cloud machines by name."""

from __future__ import annotations

from shardlint.facts import accelerators
from shardlint.facts.hardware import Machine
from shardlint.facts.tables import row_by_key
from shardlint.findings.patterns import Pattern

_SPEAKING_NAMES = (
    ("ibm", Pattern(r"gx\d+d?-\d+x\d+x(?P<gpus>\d+)(?P<gpu>[a-z]+\d+[a-z]?)")),
    ("oci", Pattern(r"(?:bm|vm)\.gpu\.(?P<gpu>[a-z]+\d+[a-z]?)(?:-[a-z0-9]+)?\.(?P<gpus>\d+)")),
    ("crusoe", Pattern(r"(?P<gpu>[a-z]+\d+[a-z]?-\d+gb(?:-sxm|-nvl|-pcie)?)(?:-ib|-roce)?\.(?P<gpus>\d+)x")),
    ("lambda", Pattern(r"gpu_(?P<gpus>\d+)x_(?P<gpu>[a-z0-9_]+)")),
    ("coreweave", Pattern(r"gd-(?P<gpus>\d+)x(?P<gpu>[a-z]+\d+[a-z]?)(?:ib)?-i\d+")),
    ("digitalocean", Pattern(r"gpu-(?P<gpu>[a-z]+\d+[a-z]?)x(?P<gpus>\d+)-\d+gb")),
)
"""Clouds whose machine names say how many cards of which kind."""


def find(text: str) -> Machine | None:
    """The machine of that name (`p5.48xlarge`, `ml.p5.48xlarge`, `Standard_ND96isr_H100_v5`, `BM.GPU.H200.8`)."""
    name = text.strip().lower().removeprefix("ml.")
    row = row_by_key("machines.jsonl", name)
    if row and "is" in row:
        row = row_by_key("machines.jsonl", row["is"])
    if row is None:
        return _by_pattern(name)
    return Machine(**{"gpus": None, **{key: value for key, value in row.items() if key != "id"}})


def _by_pattern(name: str) -> Machine | None:
    for cloud, pattern in _SPEAKING_NAMES:
        match = pattern.fullmatch(name)
        cards = accelerators.find(match["gpu"]) if match else ()
        if match and cards:
            card = accelerators.likely(match["gpu"]) or cards[0]
            return Machine(name, cloud, card.id, int(match["gpus"]), source=f"the name, by the rule of {cloud}")
    return None
