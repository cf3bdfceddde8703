"""Ranks on GPUs of different memory, of which the smallest decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shardlint.facts.hardware import Hardware
from shardlint.findings import Effect, Located, Problem, Rule, Severity
from shardlint.findings.records import NamedTuple
from shardlint.layout.lower_bound import LowerBound
from shardlint.layout.memory import Memory
from shardlint.rules._words import GIB, counted, gib

ALIKE = 0.05
"""Two cards differ where one has this much more memory than the other."""
ONE = Located(1, origin="default")


class _Cards(NamedTuple):
    """Cards of one host with the least and with the most memory."""

    smallest: str
    least_bytes: int
    largest: str
    most_bytes: int


class _Outcome(NamedTuple):
    says: str
    sum: str
    effect: Effect
    severity: Severity = "warning"


def applies(hardware: Hardware) -> bool:
    return len({card.id for node in hardware.nodes for _, card in node.cards}) > 1


def judge(
    hardware: Hardware,
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int] = ONE,
    data_parallel_size: Located[int] = ONE,
    gpu_memory_utilization: Located[float] | None = None,
    least_weights: Located[LowerBound] | None = None,
    memory: Located[Memory] | None = None,
) -> Iterator[Problem]:
    degrees = (tensor_parallel_size, pipeline_parallel_size, data_parallel_size)
    ranks = 1
    for degree in degrees:
        ranks *= degree.value
    cards = _used(hardware, ranks)
    if cards is None or ranks < 2:
        return
    weights = least_weights.value.fullest_rank_bytes if least_weights is not None else None
    outcome = _outcome(cards, weights, _share(gpu_memory_utilization), memory)
    size = max(degrees, key=lambda degree: degree.value)
    yield Problem(
        at=size,
        message=f"{counted(ranks, 'rank')} use GPUs of different memory, {cards.largest} with "
        f"{gib(cards.most_bytes)} and {cards.smallest} with {gib(cards.least_bytes)}: every rank takes as much, and "
        f"the smallest decides: {outcome.says}",
        sum=outcome.sum,
        help=tuple(_advice(cards, tensor_parallel_size, pipeline_parallel_size)),
        severity=outcome.severity,
        effect=outcome.effect,
        certainty="exact" if outcome.severity == "error" else "estimate",
    )


def _share(given: Located[float] | None) -> float:
    return given.value if given is not None and 0 < given.value <= 1 else 1.0


def _used(hardware: Hardware, ranks: int) -> _Cards | None:
    """The extremes of the cards that the ranks need; None where as many alike are there, or the memory is not known."""
    cards = [(card.memory_bytes or 0, card.name) for node in hardware.nodes for n, card in node.cards for _ in range(n)]
    alike = Counter(name for _, name in cards)
    if any(not size for size, _ in cards) or max(alike.values()) >= ranks:
        return None
    (least, smallest), (most, largest) = min(cards), max(cards)
    return None if most < least * (1 + ALIKE) else _Cards(smallest, least, largest, most)


def _outcome(cards: _Cards, weights: int | None, share: float, memory: Located[Memory] | None) -> _Outcome:
    usable = int(share * cards.least_bytes)
    if weights is not None and weights >= usable:
        return _Outcome(
            f"{gib(weights)} of weights do not fit it",
            f"{gib(weights)} of weights > {share:g} x {gib(cards.least_bytes)}",
            "runs-out-of-memory",
            "error",
        )
    if memory is not None:
        tightest = memory.value.tightest()
        left, needed = tightest.kv.likely, tightest.needed(memory.value.max_model_len)
        if left < needed:
            return _Outcome(
                f"beside the weights {gib(max(left, 0))} are left of it for a KV cache that needs {gib(needed)}",
                f"{gib(max(left, 0))} < {gib(needed)} for {memory.value.max_model_len} tokens",
                "runs-out-of-memory",
            )
    idle = cards.most_bytes - cards.least_bytes
    return _Outcome(
        f"{gib(idle)} of the largest stay empty", f"{gib(cards.most_bytes)} - {gib(cards.least_bytes)}", "wastes"
    )


def _advice(cards: _Cards, tensor: Located[int], pipeline: Located[int]) -> Iterator[str]:
    yield f"--tensor-parallel-size 1 on the {cards.largest} alone, if the model fits it"
    if pipeline.value == 1 and tensor.value == 2:
        stages = "--tensor-parallel-size 1 --pipeline-parallel-size 2"
        yield f"{stages} with VLLM_PP_LAYER_PARTITION, which gives the larger GPU more layers"
    yield f"a model of fewer bytes: {cards.least_bytes / GIB:.0f} GiB a rank at most"


RULE = Rule("SL809", "unequal-gpus", "hetero-gpus", "warning", "wastes", judge, applies, engines=("vllm", "sglang"))
