"""Sizes and a model in; every rank with its layers, its bytes and its node out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardlint.architectures import known_pieces, rows_of
from shardlint.architectures.rows import Row, Rows
from shardlint.engines.cutting import Cutting
from shardlint.facts import Accelerator, Geometry
from shardlint.findings import Located, Unknown
from shardlint.layout.demands import Unmet, unmet_demands
from shardlint.layout.dtypes import cache_element_bytes, cache_type, model_element_bytes
from shardlint.layout.holdings import Holdings
from shardlint.layout.layout import CacheShare, Layout, Rank, StateShare
from shardlint.layout.ranks import expert_rank, place_of, ranks_per_node
from shardlint.layout.share import Division, Uneven, makeshift_blocks, uneven_pieces
from shardlint.layout.sizes import DEGREES, Sizes
from shardlint.layout.stages import Layers, PartitionFault, stage_layers
from shardlint.layout.states import StateTypes, with_states

MOST_RANKS = 4096
"""Ranks of one instance that are still told apart: far more than any deployment has, few enough to list."""


def lay_out(
    sizes: Sizes,
    geometry: Geometry | Unknown,
    cutting: Cutting,
    *,
    rows: Rows | Unknown | None = None,
    gpus_per_node: int | None = None,
    dtype: str | None = None,
    kv_cache_dtype: str | None = None,
    gpu: Accelerator | None = None,
    mamba_cache_dtype: str | None = None,
    mamba_ssm_cache_dtype: str | None = None,
    block_size: int | None = None,
) -> Layout:
    """The layout that these sizes give of this model under an engine's cutting table.

    Never raises for what sizes and model say: what the engine refuses is named in `refused`, what cannot be told is
    None with its reason in `unknown`, and more than 4,096 ranks are not told apart.  `dtype` and the options
    after it are the engine's as written, None where they are not; `rows` are the model's, worked out where not given.
    `gpu` decides what experts are padded to; where it is None, the layout is that of the card that the cutting table
    calls usual.
    """
    impossible = impossible_size(sizes)
    if impossible is not None:
        return Layout((), refused=impossible, sizes=sizes)
    rows = rows_of(geometry) if rows is None else rows
    capability, to_cut = None if gpu is None else gpu.compute_capability, _rows_to_cut(geometry, rows)
    uneven = uneven_pieces(sizes, to_cut, cutting, capability)
    if sizes.world_size > MOST_RANKS:
        too_many = f"the layout has {sizes.world_size} ranks, and at most {MOST_RANKS} are told apart"
        return Layout((), too_many, _refusal(sizes, geometry, (), None, uneven, ()), sizes, uneven=uneven)
    stages = _stages(sizes, number_of_layers(geometry, rows), cutting)
    fault = stages if isinstance(stages, PartitionFault) else None
    ranges = () if stages is None or isinstance(stages, PartitionFault) else stages
    holdings = _holdings(sizes, geometry, rows, cutting, ranges, dtype, kv_cache_dtype, capability)
    unmet = unmet_demands(rows, sizes, ranges) if isinstance(rows, Rows) else ()
    per_node = ranks_per_node(sizes, gpus_per_node)
    element_bytes = None if holdings is None or holdings.model_bits is None else holdings.model_bits // 8
    types = StateTypes(element_bytes, mamba_cache_dtype, mamba_ssm_cache_dtype)
    kept = [_kept(holdings, stage, types, block_size) for stage in range(sizes.pipeline_parallel_size)]
    return Layout(
        ranks=tuple(_ranks(sizes, ranges, holdings, per_node, kept)),
        unknown=_unknown(geometry, rows, dtype, kv_cache_dtype, holdings),
        refused=_refusal(sizes, geometry, ranges, fault, uneven, unmet),
        sizes=sizes,
        stages=ranges,
        partition_fault=fault,
        uneven=uneven,
        ranks_per_node=per_node,
        makeshifts=makeshift_blocks(sizes, to_cut, cutting, capability),
        unmet=unmet,
    )


def impossible_size(sizes: Sizes) -> str | None:
    """Why there are no such ranks at all: a degree below 1."""
    for degree in (*DEGREES, "decode_context_parallel_size", "nnodes"):
        if getattr(sizes, degree) < 1:
            return f"{degree} is {getattr(sizes, degree)} and must be at least 1"
    return None


def _rows_to_cut(geometry: Geometry | Unknown, rows: Rows | Unknown) -> tuple[Row, ...]:
    if isinstance(rows, Rows):
        return rows.weights
    return () if isinstance(geometry, Unknown) else known_pieces(geometry)


def number_of_layers(geometry: Geometry | Unknown, rows: Rows | Unknown) -> int | None:
    """Decoder layers, known of many models whose rows are not."""
    if isinstance(rows, Rows):
        return rows.layers
    fact = None if isinstance(geometry, Unknown) else geometry.facts.get("num_hidden_layers")
    return fact.value if isinstance(fact, Located) and isinstance(fact.value, int) and fact.value > 0 else None


def _stages(sizes: Sizes, layers: int | None, cutting: Cutting) -> tuple[Layers, ...] | PartitionFault | None:
    if layers is None:
        return None
    return stage_layers(layers, sizes.pipeline_parallel_size, cutting.stage_remainder, sizes.pp_layer_partition)


def _holdings(
    sizes: Sizes,
    geometry: Geometry | Unknown,
    rows: Rows | Unknown,
    cutting: Cutting,
    stages: tuple[Layers, ...],
    dtype: str | None,
    kv_cache_dtype: str | None,
    capability: str | None,
) -> Holdings | None:
    if isinstance(geometry, Unknown) or isinstance(rows, Unknown) or not stages:
        return None
    element = model_element_bytes(geometry, dtype)
    bits = 8 * element if isinstance(element, int) else None
    cache_element = cache_element_bytes(geometry, cache_type(rows, kv_cache_dtype, capability), element)
    return Holdings(
        rows=rows,
        division=Division.of(sizes, cutting, rows.weights, capability),
        stages=stages,
        model_bits=bits,
        quantised_bits=bits if rows.bytes_unknown is None else None,
        cache_element_bytes=cache_element if isinstance(cache_element, int) else None,
        ranks_per_token=sizes.decode_context_parallel_size * sizes.prefill_context_parallel_size,
    )


Kept = tuple[tuple[CacheShare, ...] | None, tuple[StateShare, ...]]
"""What sequences leave on the ranks of a stage: caches, None where their bytes are not known, and states."""


def _ranks(
    sizes: Sizes, stages: tuple[Layers, ...], holdings: Holdings | None, per_node: int | None, kept: Sequence[Kept]
) -> Iterator[Rank]:
    for rank in range(sizes.world_size):
        place = place_of(rank, sizes)
        cache, states = kept[place.pipeline]
        yield Rank(
            rank=rank,
            data_parallel_rank=place.data,
            pipeline_parallel_rank=place.pipeline,
            prefill_context_parallel_rank=place.context,
            tensor_parallel_rank=place.tensor,
            node=None if per_node is None else rank // per_node,
            layers=stages[place.pipeline] if stages else None,
            weight_bytes=holdings.weight_bytes(place.pipeline, expert_rank(place, sizes)) if holdings else None,
            kv_bytes_per_token_if_all_full=None if cache is None else sum(c.layers * c.bytes_per_token for c in cache),
            caches=cache,
            states=states,
        )


def _kept(holdings: Holdings | None, stage: int, types: StateTypes, block_size: int | None) -> Kept:
    caches = None if holdings is None else holdings.caches(stage)
    if holdings is None or caches is None:
        return None, ()
    kept = with_states(caches, holdings.rows.states, holdings.division, holdings.stages[stage], types, block_size)
    return (None, ()) if kept is None else kept


def _unknown(
    geometry: Geometry | Unknown,
    rows: Rows | Unknown,
    dtype: str | None,
    kv_cache_dtype: str | None,
    holdings: Holdings | None,
) -> str | None:
    """Why some bytes are None, and what would settle it."""
    if isinstance(geometry, Unknown):
        return _in_words(geometry)
    if isinstance(rows, Unknown):
        return _in_words(rows)
    element = model_element_bytes(geometry, dtype)
    for reason in (rows.bytes_unknown, element, cache_element_bytes(geometry, kv_cache_dtype, element)):
        if isinstance(reason, Unknown):
            return _in_words(reason)
    if holdings is not None and any(map(holdings.division.needs_the_card, rows.weights)):
        return "what the kernels of this card have experts padded to is not known; a card of another generation"
    return None


def _in_words(unknown: Unknown) -> str:
    return f"{unknown.reason}; {unknown.settle_by}" if unknown.settle_by else unknown.reason


def _refusal(
    sizes: Sizes,
    geometry: Geometry | Unknown,
    stages: tuple[Layers, ...],
    fault: PartitionFault | None,
    uneven: tuple[Uneven, ...],
    unmet: tuple[Unmet, ...],
) -> str | None:
    """The first reason for which the engine would not serve this layout."""
    if uneven:
        return str(uneven[0])
    if sizes.enable_expert_parallel and _is_dense(geometry):
        return "expert parallelism of a model without experts"
    if fault is not None:
        return f"VLLM_PP_LAYER_PARTITION: {fault.reason}"
    if unmet:
        return unmet[0].reason
    empty = [stage for stage, layers in enumerate(stages) if layers.number == 0]
    return f"pipeline stage {empty[0]} of {len(stages)} holds no layer" if empty else None


def _is_dense(geometry: Geometry | Unknown) -> bool:
    fact = None if isinstance(geometry, Unknown) else geometry.facts.get("num_experts")
    return isinstance(fact, Located) and fact.value == 0
