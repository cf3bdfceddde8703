"""From a layout and a model's geometry to the plan that tries them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardlint.architectures import Rows
from shardlint.architectures.quantisation import quantisation_of
from shardlint.facts import Geometry
from shardlint.findings import Located, Unknown
from shardlint.layout import Group, GroupKind, Layout, Sizes
from shardlint.layout.memory import Memory
from shardlint.layout.traffic import VOCABULARY_PADS_TO
from shardlint.smoke.plan import Experts, Heads, Plan, Scaled

MOST_HIDDEN = 128
MOST_WIDTH = 128
MOST_EXPERT_WIDTH = 32
MOST_VOCABULARY = 512
MOST_INTERLEAVE = 4
"""Sizes of the matrices that stand for the model's: large enough for a fault to show in hundreds of elements."""

INSIDE_A_REPLICA: tuple[GroupKind, ...] = ("tp", "dcp", "pcp", "pp")
WITH_EXPERTS: tuple[GroupKind, ...] = ("dp", "ep")
"""Kinds of groups in the order in which vLLM makes them; the last two only for models with experts."""

WIDTHS = ("intermediate_size", "moe_intermediate_size")

DTYPES = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32", "float32": "float32"}
"""What `--dtype` may say."""


def plan_of(
    layout: Layout,
    geometry: Geometry | Unknown,
    *,
    dtype: str | None = None,
    interleave: int | None = None,
    memory: Memory | None = None,
    rows: Rows | Unknown | None = None,
    quantization: str | None = None,
) -> Plan | Unknown:
    """The plan that tries a layout of a model, or why there is none.

    `dtype`, `interleave` and `quantization` are the engine's options as written. With a `memory`, the ranks take their
    weights and the KV cache that it leaves room for. `rows` tell what the model has beside what is tried; None where
    nobody asks.
    """
    if layout.refused is not None:
        return Unknown(f"the engine refuses this layout: {layout.refused}")
    if not layout.ranks or not layout.stages:
        return Unknown(f"the layout is not known: {layout.unknown or 'the number of layers is missing'}")
    if isinstance(geometry, Unknown):
        return geometry
    sizes = layout.sizes
    ways = sizes.tensor_parallel_size
    hidden = geometry.facts["hidden_size"]
    width = _width(geometry, ways)
    if isinstance(hidden, Unknown):
        return hidden
    if isinstance(width, Unknown):
        return width
    heads, vocabulary, experts = _heads(geometry), _vocabulary(geometry, ways), _experts(geometry, sizes)
    has_experts = bool(geometry.value("num_experts"))
    kinds = INSIDE_A_REPLICA + (WITH_EXPERTS if has_experts else ())
    return Plan(
        sizes=sizes,
        worlds=_worlds(sizes, has_experts),
        groups={kind: table for kind in kinds if len((table := layout.groups(kind))[0]) > 1},
        twins=layout.groups("dp") if sizes.data_parallel_size > 1 else (),
        stages=tuple((layers.start, layers.stop) for layers in layout.stages),
        hidden=Scaled("hidden_size", hidden.value, scaled(hidden.value, ways, MOST_HIDDEN)),
        width=width,
        heads=heads,
        vocabulary=vocabulary,
        experts=experts,
        interleave=_interleave(interleave),
        dtype=model_dtype(geometry, dtype),
        allocation=() if memory is None else _allocation(layout, memory),
        untried=(*_untried(sizes, heads, vocabulary, experts, has_experts), *_beside(geometry, rows, quantization)),
    )


def scaled(size: int, ways: int, most: int) -> int:
    """A size of at most about `most` that leaves the same remainder when it is cut `ways` ways."""
    pieces = max(1, min(size, most) // ways) if size >= ways else 0
    return pieces * ways + size % ways


def model_dtype(geometry: Geometry, option: str | None) -> str:
    """The dtype that the engine computes in: as told, else the checkpoint's, in 16 bits."""
    if option not in (None, "auto"):
        return DTYPES.get(str(option), "bfloat16")
    written = str(geometry.value("torch_dtype")).removeprefix("torch.")
    return written if written == "float16" else "bfloat16"


def _width(geometry: Geometry, ways: int) -> Scaled | Unknown:
    """The first width of an MLP that tensor parallelism cuts evenly."""
    for name in WIDTHS:
        fact = geometry.facts[name]
        if isinstance(fact, Located) and isinstance(fact.value, int) and fact.value and fact.value % ways == 0:
            return Scaled(name, fact.value, scaled(fact.value, ways, MOST_WIDTH))
    return Unknown(f"no width of an MLP ({', '.join(WIDTHS)}) is known that divides by tensor_parallel_size {ways}")


def _heads(geometry: Geometry) -> Heads | None:
    """Those of a layer; None where they are unknown or differ in a way that no rule of the engine tells."""
    query, kv = _count(geometry, "num_attention_heads"), _count(geometry, "num_key_value_heads")
    if geometry.value("is_mla"):
        kv = 1
    return Heads(query, kv) if query and kv and query % kv == 0 else None


def _vocabulary(geometry: Geometry, ways: int) -> Scaled | None:
    """Fewer rows with the same padding, which is cut at the same places."""
    rows = _count(geometry, "vocab_size")
    tried = scaled(rows, math.lcm(VOCABULARY_PADS_TO, ways), MOST_VOCABULARY)
    return Scaled("vocab_size", rows, tried) if rows else None


def _experts(geometry: Geometry, sizes: Sizes) -> Experts | None:
    number, per_token = _count(geometry, "num_experts"), _count(geometry, "num_experts_per_tok")
    name = next((name for name in reversed(WIDTHS) if _count(geometry, name)), None)
    if not number or not 0 < per_token <= number or name is None:
        return None
    width, ways = _count(geometry, name), 1 if sizes.enable_expert_parallel else sizes.expert_group_size
    if width % ways:
        return None
    return Experts(number, per_token, Scaled(name, width, scaled(width, ways, MOST_EXPERT_WIDTH)))


def _interleave(option: int | None) -> Scaled:
    planned = option if option and option > 0 else 1
    return Scaled("cp_kv_cache_interleave_size", planned, min(planned, MOST_INTERLEAVE))


def _count(geometry: Geometry, name: str) -> int:
    value = geometry.value(name)
    return value if isinstance(value, int) and value > 0 else 0


def _worlds(sizes: Sizes, experts: bool) -> tuple[Group, ...]:
    size = sizes.world_size if experts else sizes.replica_size
    return tuple(tuple(range(start, start + size)) for start in range(0, sizes.world_size, size))


def _allocation(layout: Layout, memory: Memory) -> tuple[tuple[int, int], ...]:
    """Bytes of weights and KV cache of each rank, as its budget has them."""
    budget_of = {
        (budget.rank.pipeline_parallel_rank, budget.rank.weight_bytes, budget.rank.caches): budget
        for budget in memory.budgets
    }
    budgets = [budget_of[rank.pipeline_parallel_rank, rank.weight_bytes, rank.caches] for rank in layout.ranks]
    return tuple((int(budget.weights.likely), max(0, int(budget.kv.likely))) for budget in budgets)


def _untried(
    sizes: Sizes, heads: Heads | None, vocabulary: Scaled | None, experts: Experts | None, has_experts: bool
) -> Iterator[str]:
    if heads is None:
        yield "attention"
    if vocabulary is None and sizes.tensor_parallel_size > 1:
        yield "the vocabulary"
    if has_experts and experts is None:
        yield "experts"
    if sizes.enable_eplb:
        yield "copies of experts"


def _beside(geometry: Geometry, rows: Rows | Unknown | None, quantization: str | None) -> Iterator[str]:
    """What a model has that no claim is about: all matrices are plain, and all layers attend with heads."""
    known = rows if isinstance(rows, Rows) else None
    if geometry.value("is_mla"):
        yield "MLA's latent projections"
    if method := quantisation_of(geometry) or quantization:
        yield f"weights quantised by {method}" if isinstance(method, str) else "quantised weights"
    if known and any(cache.kind == "index" for cache in known.caches):
        yield "the index of sparse attention"
    if known and known.states:
        yield "layers with a recurrent state"
    if known and any(row.tower != "none" for row in known.weights):
        yield "towers of images or sounds"
    if isinstance(rows, Unknown):
        yield "other kinds of layers (which the model has is not known)"
