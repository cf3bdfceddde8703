"""Print how far shardlint's sum of a GPU's memory is from what vLLM printed at its start.

Usage: python scripts/score_memory.py KV_CAPACITY_JSONL [--show] [--hold-out]

Each line of KV_CAPACITY_JSONL is one start: model, card, sizes and options, and what the log says (GiB of weights,
of KV cache, tokens, outcome). Only models that the built-in catalogue knows are counted; why a line has no budget is
counted too. A line without a release is measured against all of them, from the lowest low to the highest high.

The margins of the package were set with logs like these in sight. `--hold-out` says what margins are worth that were
not: the ranges are shrunk to what the lines of one half of the models need, and measured on those of the other half.
The likely values stay those of the package.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shardlint import engines
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator, Geometry, accelerators
from shardlint.facts.models import geometry_of
from shardlint.findings import Located, Unknown
from shardlint.layout import Layout, Rank, Sizes, lay_out
from shardlint.layout.memory import Memory, Options, longest, memory
from shardlint.layout.overheads import ERAS, GIB
from shardlint.text import Library, Source

DRIVER_KEEPS_GIB = 0.45
"""Between what torch says of a card, which is what logs print, and what the table of cards has."""


DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
"""As people write them -> as the engine does."""


class NoFiles(Library):
    """A library without any file: every model comes from the catalogue."""

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"{path} is not read")

    def model(self, model_id: str) -> Any:
        return Unknown(f"{model_id} has no files")


class Start(NamedTuple):
    """One line, and shardlint's view of it; a part is None where something that it needs is not known."""

    line: Mapping[str, Any]
    layout: Layout | None
    memories: tuple[Memory, ...]
    """One for each release that it may have been."""
    why: str | None = None
    """Why it has no memory."""


def main(path: Path, show: bool, hold_out: bool) -> None:
    """Print the figures, and the lines that miss them."""
    starts = [_start(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    _report("weights per GPU within 2 %", [_weights(start) for start in starts], show)
    _report("measured KV inside low-high", [_inside(start) for start in starts], show)
    widths = [width for start in starts for width in _width(start)]
    median = f"{statistics.median(widths):.1%} of what may be used"
    print(f"median width of low-high: {median}, {len(widths)} lines")
    _report("KV tokens within 1 % from measured KV memory", [_tokens(start) for start in starts], show)
    alone = [start for start in starts if (start.line["tp"] or 1) == 1]
    _report("    where one GPU decides", [_tokens(start) for start in alone], False)
    _report("requests of the full length within 2 %", [_requests(start) for start in starts], show)
    _report("failed start-ups not called safe", [_failed(start) for start in starts], show)
    _report("starts not warned of for want of headroom", [_warned(start) for start in starts], show)
    _report_unknown(starts, show)
    if hold_out:
        _hold_out(starts)


def _report_unknown(starts: Sequence[Start], show: bool) -> None:
    """Why lines have no budget, the most frequent reason first."""
    without = [start for start in starts if start.why is not None]
    print(f"lines with a budget: {len(starts) - len(without)}/{len(starts)}; the others:")
    for reason, number in Counter(start.why for start in without).most_common():
        print(f"    {number} {reason}")
        for start in without:
            if show and start.why == reason:
                print(f"        {_name(start.line)}")


def _hold_out(starts: Sequence[Start]) -> None:
    """The part of the ranges that every second model needs, tried on the other models, and the other way round."""
    found = [(start.line["model"], needed) for start in starts if (needed := _needed(start)) is not None]
    models = sorted({model for model, _ in found})
    halves = [[needed for model, needed in found if model in models[first::2]] for first in (0, 1)]
    for fitted, held in (halves, halves[::-1]):
        part = max(fitted)
        inside = sum(needed <= part for needed in held)
        print(
            f"hold-out: {part:.0%} of the ranges would do for {len(fitted)} lines, and hold "
            f"{inside}/{len(held)} lines of other models = {inside / len(held):.1%}"
        )


def _needed(start: Start) -> float | None:
    """How far the measured KV memory is from the likely one, as a share of the range on that side."""
    measured, kept = start.line["available_kv_gib_per_gpu"], _kv(start)
    if measured is None or kept is None:
        return None
    low, likely, high = kept
    return float((measured - likely) / (high - likely) if measured > likely else (likely - measured) / (likely - low))


def _report(what: str, found: list[tuple[bool, str] | None], show: bool) -> None:
    counted = [one for one in found if one is not None]
    right = sum(good for good, _ in counted)
    print(f"{what}: {right}/{len(counted)}" + (f" = {right / len(counted):.1%}" if counted else ""))
    for good, text in counted:
        if show and not good:
            print(f"    {text}")


def _start(line: Mapping[str, Any]) -> Start:
    geometry = geometry_of(line["model"], NoFiles(), None)
    if line["engine"] != "vllm":
        return Start(line, None, (), "another engine")
    if isinstance(geometry, Unknown):
        return Start(line, None, (), "the model is not in the catalogue")
    if _online(line, geometry):
        return Start(line, None, (), "quantised while loading, or a quantised copy whose config is not known")
    cards = _cards(line)
    releases = _releases(line)
    layouts = [_lay_out(line, geometry, release, cards) for release in releases]
    share = line["gpu_memory_utilization"]
    memories: list[Memory] = []
    why = None
    for release, layout in zip(releases, layouts, strict=True):
        default = engines.engine("vllm").defaults(release).get("gpu_memory_utilization", 0.9)
        options = Options(
            release,
            share or default,
            line["max_model_len"] or _length(geometry),
            line["max_num_batched_tokens"],
            line["max_num_seqs"],
            bool(line["enforce_eager"]),
        )
        found = memory(layout, geometry, cards, options) if cards else Unknown("the line names no card that is known")
        if isinstance(found, Unknown):
            why = found.reason.replace(line["model"], "the model")
        else:
            memories.append(found)
    return Start(line, layouts[0], tuple(memories), None if memories else why)


def _length(geometry: Geometry) -> int:
    fact = geometry.facts.get("max_position_embeddings")
    return fact.value if isinstance(fact, Located) and isinstance(fact.value, int) else 2048


def _cards(line: Mapping[str, Any]) -> tuple[Accelerator, ...]:
    """The card that the line names, with the memory that its log printed where it did."""
    name = re.split(r" \(", line["gpu"] or "")[0]
    cards = accelerators.find(name) if name else ()
    sized = re.fullmatch(r"(.+) (\d+)GB", name)
    if sized and not cards:
        cards = accelerators.of_memory(accelerators.find(sized[1]), float(sized[2]))
    total = line["gpu_mem_total_gib"]
    if not total:
        return cards
    seen = int((total + DRIVER_KEEPS_GIB) * GIB)
    if not cards:
        return (Accelerator("unknown", name or "a card", "nvidia", seen, None, None, None),)
    return tuple(card._replace(memory_bytes=seen) for card in cards[:1])


def _releases(line: Mapping[str, Any]) -> tuple[Version, ...]:
    named = re.match(r"v?(\d+(?:\.\d+)+(?:\.post\d+)?)", line["engine_version"] or "")
    version = Version.parse(named[1]) if named else None
    return (version,) if version else tuple(one.since for one in ERAS if one.since > Version((0, 1)))


def _lay_out(line: Mapping[str, Any], geometry: Geometry, release: Version, cards: tuple[Accelerator, ...]) -> Layout:
    sizes = Sizes(
        line["tp"] or 1,
        line["pp"] or 1,
        line["dp"] or 1,
        decode_context_parallel_size=line["dcp"] or 1,
        enable_expert_parallel=bool(line["ep"]),
    )
    return lay_out(
        sizes,
        geometry,
        engines.engine("vllm").cutting(release),
        dtype=DTYPES.get(line["dtype"], line["dtype"]),
        kv_cache_dtype=line["kv_cache_dtype"],
        gpu=cards[0] if cards else None,
    )


def _online(line: Mapping[str, Any], geometry: Geometry) -> str | None:
    """The quantisation that the engine was asked for, where the checkpoint has none of its own: bytes unknown."""
    stated = geometry.raw.get("quantization_config")
    return line["quantisation"] if not stated and line["quantisation"] == "fp8" else None


def _name(line: Mapping[str, Any]) -> str:
    return f"{line['id']} {line['model']} tp{line['tp']} pp{line['pp']} {line['engine_version']} {line['gpu']}"


def _weights(start: Start) -> tuple[bool, str] | None:
    measured = start.line["weights_gib_per_gpu"]
    if not measured or start.layout is None or start.layout.unknown is not None:
        return None
    if start.memories:
        held = [budget.weights.likely / GIB for budget in start.memories[0].budgets]
    else:
        held = [(rank.weight_bytes or 0) / GIB for rank in start.layout.ranks]
    nearest = min(held, key=lambda one: abs(one - measured), default=0.0)
    return abs(nearest - measured) <= 0.02 * measured, f"{_name(start.line)}: {nearest:.2f} for {measured} GiB"


def _kv(start: Start) -> tuple[float, float, float] | None:
    """Low, likely and high GiB: of the first stage, as logs print it, where the line's weights do not tell."""
    if not start.memories:
        return None
    kept = [one.budgets[0].kv for one in start.memories]
    return min(kv.low for kv in kept) / GIB, kept[0].likely / GIB, max(kv.high for kv in kept) / GIB


def _inside(start: Start) -> tuple[bool, str] | None:
    measured, kept = start.line["available_kv_gib_per_gpu"], _kv(start)
    if measured is None or kept is None:
        return None
    low, likely, high = kept
    text = f"{_name(start.line)}: {measured} in {low:.2f} {likely:.2f} {high:.2f} {_terms(start)}"
    return low <= measured <= high, text


def _terms(start: Start) -> str:
    terms = start.memories[0].budgets[0].terms()
    return ", ".join(f"{name} {term.likely / GIB:.2f}" for name, term in terms)


def _width(start: Start) -> Iterator[float]:
    """From low to high as a share of what the engine may use, of a line that prints its KV memory."""
    kept = _kv(start)
    if kept is not None and start.line["available_kv_gib_per_gpu"] is not None:
        usable = start.memories[0].budgets[0].usable.likely / GIB
        yield (kept[2] - kept[0]) / usable


def _tokens(start: Start) -> tuple[bool, str] | None:
    """Plain attention only: the tokens of other models are a product of lengths and not a capacity.

    Not with pipeline stages: the log prints the KV memory of the first, and the tokens are those of the tightest.
    With several ranks of one stage the two may differ as well (a card that drives a display, unequal buffers), which
    no line tells: the lines of one GPU are counted alone too.
    """
    measured, tokens, layout = start.line["available_kv_gib_per_gpu"], start.line["kv_cache_tokens"], start.layout
    if (
        (start.line["pp"] or 1) > 1
        or not measured
        or not tokens
        or layout is None
        or layout.unknown is not None
        or not _is_plain(layout)
    ):
        return None
    stages = {rank.pipeline_parallel_rank: rank for rank in layout.ranks}
    found = min((longest(_needs(rank), measured * GIB) for rank in stages.values()), key=lambda one: abs(one - tokens))
    return abs(found - tokens) <= 0.01 * tokens, f"{_name(start.line)}: {found} for {tokens}"


def _needs(rank: Rank) -> Callable[[int], int]:
    return lambda tokens: rank.kv_bytes(tokens) or 0


def _requests(start: Start) -> tuple[bool, str] | None:
    """Requests of the full length, for all kinds of attention."""
    measured, printed = start.line["available_kv_gib_per_gpu"], start.line["max_concurrency"]
    if not measured or not printed or not start.memories or (start.line["pp"] or 1) > 1:
        return None
    found = measured * GIB / start.memories[0].budgets[0].needed(start.memories[0].max_model_len)
    return abs(found - printed) <= 0.02 * printed, f"{_name(start.line)}: {found:.2f} for {printed}"


def _is_plain(layout: Layout) -> bool:
    return all(cache.window is None for rank in layout.ranks for cache in rank.caches or ()) and not any(
        rank.states for rank in layout.ranks
    )


def _failed(start: Start) -> tuple[bool, str] | None:
    if start.line["outcome"] == "started" or not start.memories:
        return None
    safe = all(one.is_safe() for one in start.memories)
    return not safe, f"{_name(start.line)}: called safe, and {start.line['outcome']}"


def _warned(start: Start) -> tuple[bool, str] | None:
    """A start for which the likely sum leaves too little beside the budget, which is a warning."""
    if start.line["outcome"] != "started" or not start.memories:
        return None
    warned = all(
        any(budget.left_outside.likely < budget.outside.likely for budget in one.budgets) for one in start.memories
    )
    return not warned, f"{_name(start.line)}: warned of, and it started"


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--show" in sys.argv[2:], "--hold-out" in sys.argv[2:])
