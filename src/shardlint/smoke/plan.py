"""What is tried: the ranks, groups and stages of a layout as plain data, the sizes scaled down, the structure kept.

Nothing here needs torch; a plan travels to the processes that run it as JSON.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from shardlint.findings.words import counted
from shardlint.layout import Group, Sizes

TOKENS = 8
HEAD_DIM = 8
"""Of every attention head, in the place of the model's own."""

DegreeName = Literal["DP", "PP", "PCP", "TP"]

ALLOCATED_ON_CPU_BYTES = 2**28
"""Without a GPU for each rank, their memory is taken only where all ranks together want no more than this."""

TOLERANCES = {"bfloat16": 3e-2, "float16": 5e-3}
"""Of the largest element. Measured: splitting alone costs at most 1.1e-2 and 1.7e-3, one wrong shard at least 0.35."""
FLOAT32_TOLERANCE = 2e-6  # for each doubling of the ranks


class Scaled(NamedTuple):
    """A size of the model, by the name it has there, and the size that stands for it."""

    name: str
    planned: int
    tried: int


class Heads(NamedTuple):
    """Attention heads of a layer."""

    query: int
    kv: int
    """Of MLA one, which every rank holds: its cache of latent vectors."""


class Experts(NamedTuple):
    """The experts of a layer, and how many of them each token goes through."""

    number: int
    per_token: int
    width: Scaled
    """Of one expert; cut over all ranks of an `ep` group where whole experts are not."""


class Deviation(NamedTuple):
    """What some ranks do otherwise than planned: how tests show that a claim can fail.

    `what` and `value`: `shards` the tensor parallel shards whose products the rank adds up; `kv-heads` (start, stop)
    that it attends to; `stripe` of the tokens that it keeps for decode context parallelism; `log-sum-exp` False: it
    calls its part as heavy as any other; `chunks` the token numbers that it takes of a prefill; `vocabulary`
    (start, stop) of its rows; `padding` False: padded logits are kept; `experts` (start, stop) that it holds;
    `slice` of a tensor that it hands over; `layers` (start, stop); `residual-added` False: what a layer gives takes
    the place of the sum; `residual` False: zeros are handed over in its place; `flips` the repetitions in which its
    sum is disturbed; `allocation` (weights, KV cache) in bytes; `seed` of the weights; `groups-<kind>` the table of
    groups that is made; `end` (check, signal): the rank gets that signal as the check begins, or raises where it is "".
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
    heads: Heads | None = None
    vocabulary: Scaled | None = None
    experts: Experts | None = None
    interleave: Scaled = Scaled("cp_kv_cache_interleave_size", 1, 1)
    """Tokens in a row that one decode context parallel rank keeps."""
    dtype: str = "bfloat16"
    """The model's own, in which claims are tried a second time."""
    allocation: tuple[tuple[int, int], ...] = ()
    """Bytes of weights and of KV cache that each rank takes from its device; empty where none are to be taken."""
    graphs: bool = False
    """All-reduces are captured in CUDA graphs and replayed, as vLLM does while it decodes."""
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
        """The layout in short, `DP 2 × TP 4, EP 8`; `one rank` where nothing is split."""
        split = [f"{name} {size}" for name, size in _degrees(self.sizes) if size > 1]
        context, experts = self.sizes.decode_context_parallel_size, self.sizes.expert_group_size
        parts = [" × ".join(split) or "one rank"]
        parts += [f"DCP {context}"] * (context > 1)
        parts += [f"EP {experts}"] * (experts > 1 and self.sizes.enable_expert_parallel)
        return ", ".join(parts)

    @property
    def tolerance(self) -> float:
        """What a result in the model's dtype may be off by, as a share of the largest element."""
        return TOLERANCES.get(self.dtype) or FLOAT32_TOLERANCE * math.log2(2 * len(self.ranks))

    @property
    def scale(self) -> str:
        """What is as in the model, what is smaller, and how exact the comparisons are."""
        experts = self.experts
        sizes = (self.hidden, self.width, self.vocabulary, experts and experts.width, self.interleave)
        smaller = [
            f"{size.name} {size.planned} as {size.tried}" for size in sizes if size and size.planned > size.tried
        ]
        parts = [", ".join(dict.fromkeys(smaller)) or "the sizes of the model"]
        if self.heads:
            parts.append(
                f"{counted(self.heads.query, 'query head')}, {counted(self.heads.kv, 'KV head')} of {HEAD_DIM}"
            )
        if experts:
            parts.append(f"{counted(experts.number, 'expert')}, {experts.per_token} for a token")
        stages = "+".join(str(stop - start) for start, stop in self.stages)
        several = f" in stages of {stages}" if len(self.stages) > 1 else ""
        parts += [f"all {counted(self.layers, 'layer')}{several}", f"{TOKENS} tokens"]
        return "; ".join([*parts, f"whole numbers, tolerance 0, then {self.dtype}, tolerance {self.tolerance:.1g}"])

    def world_of(self, rank: int) -> Group:
        """The ranks that start together with this one."""
        return next(world for world in self.worlds if rank in world)

    def group_of(self, kind: str, rank: int) -> Group:
        """The group of one kind that the plan gives a rank: itself where it is in none; `world` is a kind too."""
        table = self.worlds if kind == "world" else self.groups.get(kind, ())
        return next((group for group in table if rank in group), (rank,))

    def deviation(self, what: str, rank: int, planned: Any) -> Any:
        """What the rank is to do: as planned, but in tests of the claims."""
        for deviation in self.deviations:
            if deviation.what == what and rank in deviation.ranks:
                return deviation.value
        return planned

    def on(self, backend: str) -> Plan:
        """What of the plan is tried there: CUDA graphs only on GPUs; memory that a GPU is to give is not taken from the
        host instead."""
        if backend == "nccl":
            return self._replace(graphs=True)
        total = sum(map(sum, self.allocation))
        if total <= ALLOCATED_ON_CPU_BYTES:
            return self
        return self._replace(allocation=(), untried=(*self.untried, f"the allocation of {total / 2**30:.1f} GiB"))

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        experts = self.experts
        return {**self._asdict(), "sizes": self.sizes._asdict(), "experts": experts and [*experts[:2], experts.width]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """A plan from what `to_json` gave, after a way through JSON."""
        heads, vocabulary, experts = data["heads"], data["vocabulary"], data["experts"]
        plain = {
            "sizes": Sizes(**data["sizes"]),
            "worlds": _tuples(data["worlds"]),
            "groups": {kind: _tuples(table) for kind, table in data["groups"].items()},
            "twins": _tuples(data["twins"]),
            "stages": _tuples(data["stages"]),
            "hidden": Scaled(*data["hidden"]),
            "width": Scaled(*data["width"]),
            "heads": heads and Heads(*heads),
            "vocabulary": vocabulary and Scaled(*vocabulary),
            "interleave": Scaled(*data["interleave"]),
            "experts": experts and Experts(experts[0], experts[1], Scaled(*experts[2])),
            "allocation": _tuples(data["allocation"]),
            "untried": tuple(data["untried"]),
            "deviations": tuple(Deviation(what, tuple(ranks), value) for what, ranks, value in data["deviations"]),
        }
        return cls(**{**data, **plain})


def _degrees(sizes: Sizes) -> tuple[tuple[DegreeName, int], ...]:
    return (
        ("DP", sizes.data_parallel_size),
        ("PP", sizes.pipeline_parallel_size),
        ("PCP", sizes.prefill_context_parallel_size),
        ("TP", sizes.tensor_parallel_size),
    )


def _tuples(table: list[list[int]]) -> Any:
    return tuple(tuple(row) for row in table)
