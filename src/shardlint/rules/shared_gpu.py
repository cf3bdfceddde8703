"""Engines that together ask for more of a GPU than there is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from shardlint.facts.hardware import Hardware
from shardlint.findings import Located, Problem, Rule
from shardlint.layout.placement import Tenant, Tenants
from shardlint.rules._words import counted, listed

FREE_OF_ALL = 0.95
"""What several engines can divide among themselves: each has a context on the GPU that its share does not count."""
LEAST_SHARE = 0.05


def judge(
    tenants: Located[Tenants],
    gpu_memory_utilization: Located[float],
    gpus_per_pod: Located[int] | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Problem]:
    everybody = (*tenants.value.before, tenants.value.own)
    on_cards = [(card, [one for one in everybody if card in one.cards]) for card in tenants.value.own.cards]
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
        help=tuple(_advice(tenants.value, sharers, gpus_per_pod, hardware)),
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


def _advice(
    tenants: Tenants, sharers: Sequence[Tenant], given: Located[int] | None, hardware: Hardware | None
) -> Iterator[str]:
    free = _free(tenants, hardware)
    if free is not None:
        yield _respelled(free, tenants.own, given)
    share = math.floor(100 * FREE_OF_ALL / sum(one.copies for one in sharers)) / 100
    if share >= LEAST_SHARE:
        yield f"--gpu-memory-utilization {share:g} for each of them, if the weights fit"
    yield "a GPU of its own for each engine"


def _respelled(cards: Sequence[str], own: Tenant, given: Located[int] | None) -> str:
    """Other cards, as a service, a container or a process is given them."""
    if own.name.startswith("service/"):
        return f"device_ids: [{listed(json.dumps(card) for card in cards)}]"
    if given is not None and "device=" in given.spelled:
        return f"--gpus '\"device={','.join(cards)}\"'"
    return f"CUDA_VISIBLE_DEVICES={','.join(cards)}"


def _free(tenants: Tenants, hardware: Hardware | None) -> list[str] | None:
    """Cards of the host that nobody uses, as many as the engine needs."""
    if hardware is None or len(hardware.nodes) > 1 or tenants.cards_of_later_ones is None:
        return None
    taken = {card for one in (*tenants.before, tenants.own) for card in one.cards} | tenants.cards_of_later_ones
    free = [str(card) for card in range(hardware.nodes[0].gpus) if str(card) not in taken]
    needed = len(tenants.own.cards)
    return free[:needed] if needed <= len(free) else None


RULE = Rule("SL703", "shared-gpu", "mem-shared-gpu", "error", "refuses-at-start", judge, engines=("vllm",))
