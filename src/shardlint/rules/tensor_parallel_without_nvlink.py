"""Tensor parallelism over cards that only PCIe connects."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.facts import Accelerator
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import FLAGS, counted, gib


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    accelerators: Located[tuple[Accelerator, ...]],
    tensor_parallel_size: Located[int],
    num_hidden_layers: Located[int] | None = None,
    supports_pp: Located[bool] | None = None,
    layout: Layout | None = None,
    pipeline_parallel_size: Located[int] | None = None,
    data_parallel_size: Located[int] | None = None,
) -> Iterator[Problem]:
    cards = accelerators.value
    if not cards or any(card.link != "pcie" for card in cards):
        return
    tp, name = tensor_parallel_size.value, cards[0].name
    reduces = "2 all-reduces in each layer"
    if num_hidden_layers is not None:
        reduces = f"2 all-reduces in each of {counted(num_hidden_layers.value, 'layer')}"
    yield Problem(
        at=tensor_parallel_size,
        message=f"TP {tp} puts {reduces} on PCIe, for {name} cards have no NVLink: "
        f"pipeline stages send far less and usually give more throughput",
        sum=None
        if num_hidden_layers is None
        else f"2 x {num_hidden_layers.value} layers = "
        f"{2 * num_hidden_layers.value} all-reduces a step, against {counted(tp - 1, 'hand-over')} with PP {tp}",
        help=tuple(_advice(tp, cards, supports_pp, layout, pipeline_parallel_size, data_parallel_size)),
        related=((accelerators, f"{name}: PCIe only"),),
    )


def _advice(
    tp: int,
    cards: tuple[Accelerator, ...],
    supports_pp: Located[bool] | None,
    layout: Layout | None,
    stages: Located[int] | None,
    replicas: Located[int] | None,
) -> Iterator[str]:
    """The same GPUs, none of which shares a layer with another."""
    alone = f"{FLAGS['tensor_parallel_size']} 1"
    smallest = min((card.memory_bytes or 0 for card in cards), default=0)
    weights = _replica_bytes(layout)
    if weights is not None and weights < smallest / 2:
        size = tp * (replicas.value if replicas is not None else 1)
        yield f"{alone} {FLAGS['data_parallel_size']} {size}: the {gib(weights)} of weights fit one card"
    if supports_pp is None or supports_pp.value:
        yield f"{alone} {FLAGS['pipeline_parallel_size']} {tp * (stages.value if stages is not None else 1)}"


def _replica_bytes(layout: Layout | None) -> int | None:
    """Bytes of all weights of one replica, None where a rank's are unknown."""
    ranks = [rank for rank in layout.ranks if rank.data_parallel_rank == 0] if layout is not None else []
    weights = [rank.weight_bytes for rank in ranks]
    return None if not weights or None in weights else sum(bytes_ for bytes_ in weights if bytes_ is not None)


RULE = Rule("SL105", "tensor-parallel-without-nvlink", "interconnect", "note", "slow", judge, applies)
