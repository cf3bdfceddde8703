"""A tensor parallel group whose ranks sit on several nodes."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.facts import Accelerator
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.layout.placement import Placement
from shardlint.rules._words import FLAGS, counted, respelled

RACK = 9
"""Cards from which on NVLink joins nodes: up to 8 are on the board of one node, of which another node has no part."""


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int],
    placement: Located[Placement],
    gpus_per_node: Located[int],
    num_hidden_layers: Located[int] | None = None,
    supports_pp: Located[bool] | None = None,
    accelerators: Located[tuple[Accelerator, ...]] | None = None,
    legal: Legal | None = None,
) -> Iterator[Problem]:
    tp, gpus = tensor_parallel_size.value, gpus_per_node.value
    if gpus < 1 or not _crosses(placement.value, tp, gpus):
        return
    cost = "every layer's 2 all-reduces" if num_hidden_layers is None else (
        f"2 all-reduces in each of {counted(num_hidden_layers.value, 'layer')}"
    )  # fmt: skip
    one_fabric = _one_fabric(accelerators, tp)
    here = placement.value.ranks_per_host or gpus
    spanned = max(2, -(-tp // gpus))  # a group that would fit a node may begin in one and end in the next
    why = (
        f"TP {tp} > {counted(gpus, 'GPU')} per node" if tp > gpus else f"{here} ranks per node % TP {tp} = {here % tp}"
    )
    yield Problem(
        at=tensor_parallel_size,
        message=f"a tensor parallel size of {tp} spans {spanned} nodes of {counted(gpus, 'GPU')}: "
        f"{cost} cross {'the NVLink fabric of the rack' if one_fabric else 'the network'} between nodes",
        sum=why
        if num_hidden_layers is None
        else f"{why}; 2 x {num_hidden_layers.value} = {2 * num_hidden_layers.value} all-reduces a step",
        help=tuple(_advice(tensor_parallel_size, pipeline_parallel_size.value, gpus, supports_pp, legal)),
        related=((gpus_per_node, f"{counted(gpus, 'GPU')} per node"),),
        severity="note" if gpus == 1 or one_fabric else "warning",
    )


def _crosses(placement: Placement, tp: int, gpus: int) -> bool:
    """Ranks of a TP group are neighbours; Ray fills nodes, --nnodes shares the ranks out evenly."""
    if placement.ranks_per_host is None:
        return placement.executor == "ray" and tp > gpus
    return placement.nnodes > 1 and placement.replicas_per_host is None and placement.ranks_per_host % tp != 0


def _one_fabric(accelerators: Located[tuple[Accelerator, ...]] | None, tp: int) -> bool:
    """Whether NVLink joins as many cards as the group has, whichever node they are in (an NVL72 rack)."""
    cards = accelerators.value if accelerators is not None else ()
    return bool(cards) and all(card.link == "nvlink" and (card.link_domain or 0) >= max(tp, RACK) for card in cards)


def _advice(
    size: Located[int], pp: int, gpus: int, supports_pp: Located[bool] | None, legal: Legal | None
) -> Iterator[str]:
    if supports_pp is not None and not supports_pp.value:
        return
    values = legal.values("tensor_parallel_size") if legal is not None else ()
    inside = max((value for value in values if value <= gpus and size.value % value == 0), default=0)
    if inside:
        stages = pp * size.value // inside
        yield f"{respelled(size, inside, 'tensor_parallel_size')} {FLAGS['pipeline_parallel_size']} {stages}"


RULE = Rule("SL803", "tensor-parallel-across-nodes", "multinode-shape", "warning", "slow", judge, applies)
