"""What is tried: the ranks, groups and stages of a layout as plain data, the sizes scaled down, the structure kept.

Nothing here needs torch; a plan travels to the processes that run it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from shardlint.facts import Geometry
from shardlint.findings import Located, Unknown
from shardlint.layout import Group, GroupKind, Layout, Sizes

TOKENS = 8
MOST_HIDDEN = 128
MOST_WIDTH = 128
"""Sizes of the matrices that stand for the model's: large enough for a fault to show in hundreds of elements."""

INSIDE_A_REPLICA: tuple[GroupKind, ...] = ("tp", "pcp", "pp")
WITH_EXPERTS: tuple[GroupKind, ...] = ("dp", "ep")
"""Kinds of groups in the order in which vLLM makes them; the last two only for models with experts."""

WIDTHS = ("intermediate_size", "moe_intermediate_size")

DegreeName = Literal["DP", "PP", "PCP", "TP"]


class Scaled(NamedTuple):
    """A size of the model, by the name it has there, and the size that stands for it."""

    name: str
    planned: int
    tried: int


class Deviation(NamedTuple):
    """What some ranks do otherwise than planned: how tests show that a claim can fail.

    `what` and `value`: `shards` the tensor parallel shards whose products the rank adds up; `layers` (start, stop);
    `residual` False: zeros are handed over in its place; `seed` of the weights; `groups-<kind>` the table of groups
    that is made; `end` (check, signal): the rank gets that signal as the check begins, or raises where it is "".
    """

    what: str
    ranks: Group
    value: Any


class Plan(NamedTuple):
    """One layout to be tried. Ranks count through the whole deployment, as vLLM numbers them."""

    sizes: Sizes
    worlds: tuple[Group, ...]
    """Ranks that start together: replicas of a model without experts are engines of their own."""
    groups: dict[str, tuple[Group, ...]]
    """Every kind of group that has more than one rank, in the order in which vLLM makes them."""
    twins: tuple[Group, ...]
    """Ranks that hold the same share in different replicas."""
    stages: tuple[tuple[int, int], ...]
    """The half-open range of decoder layers of each pipeline stage."""
    hidden: Scaled
    width: Scaled
    """Of the MLP, which is cut into columns and then into rows."""
    untried: tuple[str, ...] = ()
    """What the layout has and this run does not try."""
    deviations: tuple[Deviation, ...] = ()

    @property
    def ranks(self) -> range:
        return range(self.sizes.world_size)

    @property
    def layers(self) -> int:
        """Decoder layers of the whole model."""
        return self.stages[-1][1]

    @property
    def degrees(self) -> str:
        """The layout in short, `DP 2 × TP 4`; `one rank` where nothing is split."""
        split = [f"{name} {size}" for name, size in _degrees(self.sizes) if size > 1]
        return " × ".join(split) or "one rank"

    def world_of(self, rank: int) -> Group:
        """The ranks that start together with this one."""
        return next(world for world in self.worlds if rank in world)

    def group_of(self, kind: str, rank: int) -> Group:
        """The group of one kind that the plan gives a rank; `world` is a kind too."""
        table = self.worlds if kind == "world" else self.groups[kind]
        return next(group for group in table if rank in group)

    def deviation(self, what: str, rank: int, planned: Any) -> Any:
        """What the rank is to do: as planned, but in tests of the claims."""
        for deviation in self.deviations:
            if deviation.what == what and rank in deviation.ranks:
                return deviation.value
        return planned

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        return {**self._asdict(), "sizes": self.sizes._asdict()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """A plan from what `to_json` gave, after a way through JSON."""
        return cls(
            sizes=Sizes(**data["sizes"]),
            worlds=_tuples(data["worlds"]),
            groups={kind: _tuples(table) for kind, table in data["groups"].items()},
            twins=_tuples(data["twins"]),
            stages=_tuples(data["stages"]),
            hidden=Scaled(*data["hidden"]),
            width=Scaled(*data["width"]),
            untried=tuple(data["untried"]),
            deviations=tuple(Deviation(what, tuple(ranks), value) for what, ranks, value in data["deviations"]),
        )


def plan_of(layout: Layout, geometry: Geometry | Unknown) -> Plan | Unknown:
    """The plan that tries a layout of a model, or why there is none."""
    if layout.refused is not None:
        return Unknown(f"the engine refuses this layout: {layout.refused}")
    if not layout.ranks or not layout.stages:
        return Unknown(f"the layout is not known: {layout.unknown or 'the number of layers is missing'}")
    if isinstance(geometry, Unknown):
        return geometry
    ways = layout.sizes.tensor_parallel_size
    hidden = geometry.facts["hidden_size"]
    width = _width(geometry, ways)
    if isinstance(hidden, Unknown):
        return hidden
    if isinstance(width, Unknown):
        return width
    experts = bool(geometry.value("num_experts"))
    kinds = INSIDE_A_REPLICA + (WITH_EXPERTS if experts else ())
    return Plan(
        sizes=layout.sizes,
        worlds=_worlds(layout.sizes, experts),
        groups={kind: table for kind in kinds if len((table := layout.groups(kind))[0]) > 1},
        twins=layout.groups("dp") if layout.sizes.data_parallel_size > 1 else (),
        stages=tuple((layers.start, layers.stop) for layers in layout.stages),
        hidden=Scaled("hidden_size", hidden.value, scaled(hidden.value, ways, MOST_HIDDEN)),
        width=width,
        untried=tuple(_untried(layout.sizes, experts)),
    )


def scaled(size: int, ways: int, most: int) -> int:
    """A size of at most about `most` that leaves the same remainder when it is cut `ways` ways."""
    pieces = max(1, min(size, most) // ways) if size >= ways else 0
    return pieces * ways + size % ways


def _width(geometry: Geometry, ways: int) -> Scaled | Unknown:
    """The first width of an MLP that tensor parallelism cuts evenly."""
    for name in WIDTHS:
        fact = geometry.facts[name]
        if isinstance(fact, Located) and isinstance(fact.value, int) and fact.value and fact.value % ways == 0:
            return Scaled(name, fact.value, scaled(fact.value, ways, MOST_WIDTH))
    return Unknown(f"no width of an MLP ({', '.join(WIDTHS)}) is known that divides by tensor_parallel_size {ways}")


def _worlds(sizes: Sizes, experts: bool) -> tuple[Group, ...]:
    size = sizes.world_size if experts else sizes.replica_size
    return tuple(tuple(range(start, start + size)) for start in range(0, sizes.world_size, size))


def _untried(sizes: Sizes, experts: bool) -> Iterator[str]:
    yield "attention"
    if experts:
        yield "expert dispatch"
    if sizes.decode_context_parallel_size > 1:
        yield "decode context parallelism"
    if sizes.prefill_context_parallel_size > 1:
        yield "prefill context parallelism beyond its groups"


def _degrees(sizes: Sizes) -> tuple[tuple[DegreeName, int], ...]:
    return (
        ("DP", sizes.data_parallel_size),
        ("PP", sizes.pipeline_parallel_size),
        ("PCP", sizes.prefill_context_parallel_size),
        ("TP", sizes.tensor_parallel_size),
    )


def _tuples(table: list[list[int]]) -> Any:
    return tuple(tuple(row) for row in table)
