"""Cards by any of the names that manifests, clouds and drivers give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TypeVar

from shardlint.facts.hardware import Accelerator
from shardlint.facts.tables import row_by_key
from shardlint.findings.patterns import Pattern

T = TypeVar("T")

_SEPARATORS = Pattern(r"[\s_.-]+")
_SLICE = Pattern(r"mig[-_ ]?\d|^\d+g\.\d+gb", re.IGNORECASE)
_SHARED = Pattern(r"-shared$", re.IGNORECASE)
_MEMORY = Pattern(r"(\d{2,3})\s*(?:gb|g)(?![a-z0-9])", re.IGNORECASE)
_CHIP = Pattern(
    r"(?<![a-z0-9])(gb300|gb200|gh200|gb10|b300|b200|h800|h200|h100|h20|a800|a100|a10g|a10|a16|a30|a40|l40s|l40|l20|l4"
    r"|v100|t4g|t4|p100|mi355x|mi350x|mi325x|mi308x|mi300x|mi250x|mi250|mi210|gaudi3|gaudi2)(?![a-z0-9])",
    re.IGNORECASE,
)
FORMS = {
    "sxm": Pattern(r"sxm|nvlink|hbm3", re.IGNORECASE),
    "pcie": Pattern(r"pcie|nvl(?!ink)", re.IGNORECASE),
}
"""The words of a name that tell the board's form."""


def fold(name: str) -> str:
    """The name without regard to case, blanks, hyphens, underscores and dots."""
    return _SEPARATORS.sub("", name).lower()


def find(text: str, more: Sequence[Accelerator] = ()) -> tuple[Accelerator, ...]:
    """All cards that the name may mean, the likely one first; none for an unknown name or a slice of a card.

    `more` are cards beside those of the table; one of them that bears the name is meant.  Names with `|` between them
    are alternatives, all of which have to be known.
    """
    return _found(text, tuple(more))


@lru_cache(maxsize=256)
def _found(text: str, more: tuple[Accelerator, ...]) -> tuple[Accelerator, ...]:
    if "|" in text:
        meant = [find(name, more) for name in text.split("|")]
        return tuple(dict.fromkeys(card for cards in meant for card in cards)) if all(meant) else ()
    own = tuple(card for card in more if fold(text) in (fold(card.id), fold(card.name)))
    if own:
        return own
    if _SLICE.search(text):
        return ()
    whole = _SHARED.sub("", text.strip())
    row = row_by_key("accelerator_names.jsonl", fold(whole)) if whole else None
    if row:
        return tuple(by_id(identifier) for identifier in row["accelerators"])
    return _by_tokens(whole)


def likely(text: str) -> Accelerator | None:
    """The card that people mean by the name when they say no more; None where there is no telling."""
    row = row_by_key("accelerator_names.jsonl", fold(text))
    if row:
        return by_id(row["likely"]) if row["likely"] else None
    found = find(text)
    return found[0] if len(found) == 1 else None


def agreed(cards: Sequence[Accelerator], name: str) -> Accelerator:
    """What all of the cards have in common, under the name that they share; the rest is None."""
    return Accelerator(
        id=name.lower(),
        name=name,
        vendor=_common([card.vendor for card in cards]) or "",
        memory_bytes=_common([card.memory_bytes for card in cards]),
        link=_common([card.link for card in cards]),
        link_gb_per_second=_common([card.link_gb_per_second for card in cards]),
        compute_capability=_common([card.compute_capability for card in cards]),
        link_domain=_common([card.link_domain for card in cards]),
        memory_gb=_common([card.memory_gb for card in cards]),
        memory_bandwidth_gb_per_second=_common([card.memory_bandwidth_gb_per_second for card in cards]),
        bf16_native=_common([card.bf16_native for card in cards]),
        fp8=_common([card.fp8 for card in cards]),
        fp4=_common([card.fp4 for card in cards]),
        source="common to " + ", ".join(card.name for card in cards),
    )


@cache
def by_id(identifier: str) -> Accelerator:
    """The card of that id; KeyError where there is none."""
    row = row_by_key("accelerators.jsonl", identifier)
    if row is None:
        raise KeyError(identifier)
    return Accelerator(**{"link": None, "link_gb_per_second": None, "compute_capability": None, **row})


def of_memory(cards: Sequence[Accelerator], gigabytes: float) -> tuple[Accelerator, ...]:
    """Those of the cards that are sold with so many GB, or whose driver reports as much, within 5 %."""
    return tuple(card for card in cards if _has_memory(card, gigabytes))


def of_form(cards: Sequence[Accelerator], form: str) -> tuple[Accelerator, ...]:
    """Those of the cards that have the form `sxm` or `pcie`."""
    return tuple(card for card in cards if (card.link == "pcie") == (form == "pcie"))


def _has_memory(card: Accelerator, gigabytes: float) -> bool:
    sizes = (card.memory_gb or 0, (card.memory_bytes or 0) / 1e9, (card.memory_bytes or 0) / 2**30)
    return any(abs(size - gigabytes) <= 0.05 * gigabytes for size in sizes)


def _by_tokens(text: str) -> tuple[Accelerator, ...]:
    """A cluster's own label: the chip's name, then memory and form as far as they choose among its variants."""
    chip = _CHIP.search(text.replace("_", "-"))
    row = row_by_key("accelerator_names.jsonl", fold(chip[1])) if chip else None
    if row is None:
        return ()
    cards = tuple(by_id(identifier) for identifier in row["accelerators"])
    for size in _MEMORY.findall(text):
        cards = of_memory(cards, float(size)) or cards
    for form, words in FORMS.items():
        cards = (of_form(cards, form) or cards) if words.search(text) else cards
    return cards


def _common(values: Sequence[T]) -> T | None:
    return values[0] if values and all(value == values[0] for value in values) else None
