"""What a picture of a layout shows: nodes as boxes, GPUs in them, and on each GPU its rank."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.findings.records import NamedTuple
from shardlint.layout import GroupKind, Layout, Rank, Sizes

KINDS: tuple[GroupKind, ...] = ("tp", "pp", "pcp", "dp", "ep")
WITH_EXPERTS: tuple[GroupKind, ...] = ("dp", "ep")
"""Kinds of groups that a model without experts does not have: its copies are engines of their own."""
WORDS: dict[GroupKind, str] = {
    "tp": "tensor parallel",
    "pp": "pipeline",
    "pcp": "prefill context parallel",
    "dp": "data parallel",
    "ep": "expert parallel",
}


class Cell(NamedTuple):
    """One GPU. `rank` is None where it is idle."""

    rank: int | None = None
    place: str = ""
    """`DP 0 PP 1 TP 3`, without the dimensions that the layout does not have."""
    tensor_group: int = 0
    """The number of its tensor parallel group, by which it is coloured."""
    layers: str = ""
    """`0-39`; empty where there is one stage or the layers are not known."""


class Box(NamedTuple):
    """One node."""

    title: str
    cells: tuple[Cell, ...]


class GroupLine(NamedTuple):
    """All groups of one kind, in words."""

    text: str
    crosses: bool
    """Whether some of them run over several nodes."""


class Scene(NamedTuple):
    """All that is drawn."""

    title: str
    boxes: tuple[Box, ...]
    stages: tuple[str, ...]
    """`stage 0: layers 0-39`; empty where there is one."""
    groups: tuple[GroupLine, ...]
    tensor_groups: int


def scene(title: str, layout: Layout, *, gpus_per_node: int | None, has_experts: bool) -> Scene:
    """The picture of a layout that has ranks; where nothing tells the nodes, all ranks stand in one box."""
    return Scene(
        title,
        tuple(_boxes(layout, gpus_per_node)),
        tuple(_stages(layout)),
        tuple(_groups(layout, has_experts)),
        len(layout.groups("tp")),
    )


def _boxes(layout: Layout, gpus_per_node: int | None) -> Iterator[Box]:
    members: dict[int | None, list[Rank]] = {}
    for rank in layout.ranks:
        members.setdefault(rank.node, []).append(rank)
    number = {rank: index for index, group in enumerate(layout.groups("tp")) for rank in group}
    for node, ranks in members.items():
        cells = [_cell(rank, number[rank.rank], layout) for rank in ranks]
        idle = max(0, (gpus_per_node or 0) - len(cells)) if node is not None else 0
        title = "GPUs (which nodes they are on is not known)" if node is None else f"node {node}"
        yield Box(title, (*cells, *(Cell() for _ in range(idle))))


def _cell(rank: Rank, group: int, layout: Layout) -> Cell:
    sizes = layout.sizes
    places = (
        ("DP", rank.data_parallel_rank, sizes.data_parallel_size),
        ("PP", rank.pipeline_parallel_rank, sizes.pipeline_parallel_size),
        ("PCP", rank.prefill_context_parallel_rank, sizes.prefill_context_parallel_size),
        ("TP", rank.tensor_parallel_rank, sizes.tensor_parallel_size),
    )
    place = " ".join(f"{name}{index}" for name, index, size in places if size > 1)
    several = sizes.pipeline_parallel_size > 1 and rank.layers is not None
    layers = f"{rank.layers.start}-{rank.layers.stop - 1}" if several and rank.layers else ""
    return Cell(rank.rank, place, group, layers)


def _stages(layout: Layout) -> Iterator[str]:
    if len(layout.stages) > 1:
        for number, layers in enumerate(layout.stages):
            yield f"stage {number}: layers {layers.start}-{layers.stop - 1} ({layers.number})"


def _groups(layout: Layout, has_experts: bool) -> Iterator[GroupLine]:
    copies = layout.sizes.data_parallel_size
    if copies > 1 and not has_experts:
        yield GroupLine(f"{copies} copies of {layout.sizes.replica_size} ranks, each an engine of its own", False)
    for kind in KINDS:
        found = layout.groups(kind)
        if not found or len(found[0]) < 2 or (kind in WITH_EXPERTS and not has_experts):
            continue
        crossing = len(layout.crossing(kind))
        text = _in_words(kind, len(found), len(found[0]), layout.sizes)
        if layout.ranks_per_node is None:
            where = "nodes not known"
        elif crossing:
            where = "crosses nodes" if len(found) == 1 else f"{crossing} of them cross nodes"
        else:
            where = "inside a node" if len(found) == 1 else "each inside a node"
        yield GroupLine(f"{text}, {where}: {_first(found)}", bool(crossing))


def _in_words(kind: GroupKind, number: int, ranks: int, sizes: Sizes) -> str:
    """Without expert parallelism the engine cuts every expert over the ranks that would else have whole ones."""
    groups = "groups" if number > 1 else "group"
    if kind == "ep" and not sizes.enable_expert_parallel:
        return f"{number} {groups} of {ranks} with a slice of every expert on each rank"
    return f"{number} {WORDS[kind]} {groups} of {ranks}"


def _first(groups: tuple[tuple[int, ...], ...], most: int = 3) -> str:
    shown = [_ranks(group) for group in groups[:most]]
    return ", ".join(shown) + (", ..." if len(groups) > most else "")


def _ranks(group: tuple[int, ...]) -> str:
    """`[0-7]`, `[0,8]`."""
    if len(group) > 2 and group == tuple(range(group[0], group[-1] + 1)):
        return f"[{group[0]}-{group[-1]}]"
    shown = ",".join(map(str, group[:8]))
    return f"[{shown}{',...' if len(group) > 8 else ''}]"


def in_words(layout: Layout, sizes: Sizes) -> str:
    """`TP 8 x PP 2 with EP`."""
    degrees = (
        ("DP", sizes.data_parallel_size),
        ("PP", sizes.pipeline_parallel_size),
        ("PCP", sizes.prefill_context_parallel_size),
        ("TP", sizes.tensor_parallel_size),
    )
    split = " x ".join(f"{name} {size}" for name, size in degrees if size > 1) or "one GPU"
    context = sizes.decode_context_parallel_size
    return (
        split
        + (f" with DCP {context}" if context > 1 else "")
        + (" with EP" if sizes.enable_expert_parallel and len(layout.ranks) > 1 else "")
    )
