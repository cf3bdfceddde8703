"""Engines that together ask for more of a GPU than there is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardlint.facts.hardware import Hardware
from shardlint.findings import Located, Problem, Rule
from shardlint.layout.placement import Tenant
from shardlint.rules._words import counted, listed

FREE_OF_ALL = 0.95
"""What several engines can divide among themselves: each has a context on the GPU that its share does not count."""
LEAST_SHARE = 0.05


def judge(
    tenants: Located[tuple[Tenant, ...]],
    gpu_memory_utilization: Located[float],
    gpus_per_pod: Located[int] | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Problem]:
    own = tenants.value[-1]
    on_cards = [(card, [one for one in tenants.value if card in one.cards]) for card in own.cards]
    card, sharers = max(on_cards, key=lambda pair: _total(pair[1]), default=("", []))
    total = _total(sharers)
    if total <= 1:
        return
    certain = all(one.has_cache for one in sharers)
    written = gpu_memory_utilization.origin == "written"
    yield Problem(
        at=gpu_memory_utilization if written or gpus_per_pod is None else gpus_per_pod,
        message=_message(card, sharers, total, certain),
        sum=f"{' + '.join(_term(one) for one in sharers)} = {total:g} > 1",
        help=tuple(_advice(tenants.value, sharers, hardware)),
        related=tuple((one.at, f"{one.name} asks for {one.share:g}") for one in sharers[:-1]),
        severity="error" if certain else "warning",
        certainty="exact" if certain else "estimate",
    )


def _total(sharers: Sequence[Tenant]) -> float:
    return round(sum(one.share * one.copies for one in sharers), 6)


def _message(card: str, sharers: Sequence[Tenant], total: float, certain: bool) -> str:
    engines = counted(sum(one.copies for one in sharers), "engine")
    names = listed(dict.fromkeys(one.name for one in sharers))
    ends = "the one that starts last finds less free memory than it asks for"
    if not certain:
        ends += ", unless the others hold less than their shares"
    return f"{engines} on GPU {card} ({names}) ask for {total:g} of its memory together: {ends}"


def _term(one: Tenant) -> str:
    return f"{one.copies} x {one.share:g}" if one.copies > 1 else f"{one.share:g}"


def _advice(tenants: Sequence[Tenant], sharers: Sequence[Tenant], hardware: Hardware | None) -> Iterator[str]:
    needed = len(sharers[-1].cards)
    if hardware is not None and len(hardware.nodes) == 1:
        taken = {card for one in tenants for card in one.cards}
        free = [str(card) for card in range(hardware.nodes[0].gpus) if str(card) not in taken]
        if len(free) >= needed:
            yield f"device_ids or CUDA_VISIBLE_DEVICES {','.join(free[:needed])}, which no engine before it uses"
    share = math.floor(100 * FREE_OF_ALL / sum(one.copies for one in sharers)) / 100
    if share >= LEAST_SHARE:
        yield f"--gpu-memory-utilization {share:g} for each of them, if the weights fit"
    yield "a GPU of its own for each engine"


RULE = Rule("SL703", "shared-gpu", "mem-shared-gpu", "error", "refuses-at-start", judge, engines=("vllm",))
