"""From the facts of a deployment to its layout: the sizes, the ranks, where they run, what else would be legal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardlint.deployment import NotTold
from shardlint.findings import Located, Maybe, Unknown
from shardlint.layout import Layout, Legal, Sizes, lay_out, legal_values
from shardlint.layout.laying_out import impossible_size
from shardlint.layout.legal import pieces_of
from shardlint.layout.lower_bound import LowerBound, weights_at_least
from shardlint.layout.placement import Launching, Placement, place

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts

MOST_RANKS_SHARED = 64
"""Of a layout that is kept for the deployments to come: with more it is rare, and takes megabytes."""

SIZES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "enable_eplb",
    "num_redundant_experts",
    "mm_encoder_tp_mode",
    "language_model_only",
    "engram_cpu_offload",
    "all2all_backend",
    "pp_layer_partition",
    "nnodes",
)
CACHE_FIELDS = ("mamba-cache-dtype", "mamba-ssm-cache-dtype", "block-size")
LARGEST_BLOCK = 2**20
LAUNCHING = (
    "distributed_executor_backend",
    "data_parallel_backend",
    "data_parallel_size_local",
    "data_parallel_rank",
    "data_parallel_external_lb",
)


def sizes_of(facts: DeploymentFacts) -> Sizes | Unknown:
    """The degrees of a layout that has ranks at all; the first that is unknown stands for all."""
    sizes = facts.sizes_as_told
    impossible = impossible_size(sizes) if isinstance(sizes, Sizes) else None
    return Unknown(impossible) if impossible else sizes


def sizes_as_told(facts: DeploymentFacts) -> Sizes | Unknown:
    """The degrees as the engine will have them, possible or not."""
    if facts.engine.name == "sglang":
        return _sizes_of_sglang(facts)
    values: dict[str, Any] = {}
    for name in SIZES:
        size = facts.knob(name)
        if isinstance(size, Unknown):
            return size
        if size is not None:
            values[name] = size.value
    return Sizes(**values)


def _sizes_of_sglang(facts: DeploymentFacts) -> Sizes | Unknown:
    """The same for SGLang, whose replicas are servers of their own and whose experts lie inside tensor parallelism."""
    told = facts.told
    try:
        tensor, pipeline = told.tensor_parallel_size, told.pipeline_parallel_size
        spread = told.enable_ep_moe or told.enable_deepep_moe or told.moe_a2a_backend == "deepep"
        experts = tensor if spread else told.expert_parallel_size or 1
        inside = told.enable_dp_attention or told.moe_dense_tp_size
        nnodes = told.nnodes or 1
    except NotTold as missing:
        return missing.unknown
    if inside or experts not in (1, tensor):
        return Unknown("how SGLang shares tensor parallel ranks out among attention and experts is not laid out")
    return Sizes(tensor, pipeline, enable_expert_parallel=experts > 1, nnodes=nnodes)


def layout_of(facts: DeploymentFacts, degrees: tuple[int, int] | None = None) -> Layout | Unknown:
    """Every rank and what it holds; impossible sizes have no ranks, and the layout says so.

    `degrees` are the tensor and data parallel sizes of another layout than the deployment's own.
    """
    sizes = facts.sizes_as_told
    if isinstance(sizes, Unknown):
        return sizes
    if degrees is not None:
        tensor, data = degrees
        sizes = sizes._replace(tensor_parallel_size=tensor, data_parallel_size=data)
    per_node = _value(facts.gpus_per_node)
    gpu = facts.card
    dtype, cache, quantization = (_value(facts.knob(name)) for name in ("dtype", "kv_cache_dtype", "quantization"))
    convolution, recurrent, block_size = (_value(facts.deployment.engine_fields.get(name)) for name in CACHE_FIELDS)

    def laid_out() -> Layout:
        return lay_out(
            sizes,
            facts.geometry,
            facts.engine.cutting(facts.engine_version.value),
            rows=facts.rows,
            gpus_per_node=per_node,
            dtype=dtype,
            kv_cache_dtype=cache,
            gpu=gpu,
            mamba_cache_dtype=convolution,
            mamba_ssm_cache_dtype=recurrent,
            block_size=block_size if isinstance(block_size, int) and 0 < block_size <= LARGEST_BLOCK else None,
        )

    if sizes.world_size > MOST_RANKS_SHARED:
        return laid_out()
    asked = (sizes, per_node, dtype, cache, gpu, convolution, recurrent, block_size, quantization)
    return facts.once(laid_out, "layout", *asked)


def legal_of(facts: DeploymentFacts) -> Legal | Unknown:
    """What else would be legal on the same GPUs."""
    sizes = facts.sizes
    if isinstance(sizes, Unknown):
        return sizes
    gpus, nodes = _value(facts.gpus_per_node), _value(facts.nodes)
    there = gpus * nodes if gpus is not None and nodes is not None else None
    cutting, quantization = facts.engine.cutting(facts.engine_version.value), _value(facts.knob("quantization"))
    gpu = facts.card
    pieces = facts.once(lambda: pieces_of(facts.geometry, facts.rows), "pieces", quantization)
    return facts.once(
        lambda: legal_values(sizes, facts.geometry, cutting, pieces=pieces, gpus=there, gpu=gpu),
        "legal",
        sizes,
        there,
        gpu,
        quantization,
    )


def least_weights_of(facts: DeploymentFacts) -> Maybe[LowerBound]:
    """The least that the weights take under the engine's options as written."""
    layout, dtype, quantization = facts.layout, facts.knob("dtype"), facts.knob("quantization")
    for needed in (layout, dtype, quantization):
        if isinstance(needed, Unknown):
            return needed
    assert isinstance(layout, Layout)
    found = facts.once(
        lambda: weights_at_least(
            layout,
            facts.geometry,
            facts.engine.cutting(facts.engine_version.value),
            rows=facts.rows,
            dtype=_value(dtype),
            quantization=_value(quantization),
        ),
        "least weights",
        layout.sizes,
        _value(dtype),
        _value(quantization),
        facts.card,
    )
    return found if isinstance(found, Unknown) else Located(found, origin="derived", source=found.basis)


def placement_of(facts: DeploymentFacts) -> Maybe[Placement]:
    """Where the ranks run, or why the engine would not start them that way."""
    sizes = facts.sizes
    if isinstance(sizes, Unknown):
        return sizes
    found = {name: facts.knob(name) for name in LAUNCHING}
    unknown = next((value for value in found.values() if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    launching = Launching(
        executor=_value(found["distributed_executor_backend"]),
        data_parallel_backend=_value(found["data_parallel_backend"]) or "mp",
        data_parallel_size_local=_value(found["data_parallel_size_local"]),
        one_replica_per_process=found["data_parallel_rank"] is not None
        or bool(_value(found["data_parallel_external_lb"])),
    )
    if facts.deployment.server.primary.is_spread:
        sizes, launching = _spread(sizes, launching, _value(facts.nodes) or 1)
    placed = place(sizes, launching)
    return Unknown(placed) if isinstance(placed, str) else Located(placed, origin="derived", source="the command")


def _spread(sizes: Sizes, launching: Launching, pods: int) -> tuple[Sizes, Launching]:
    """What a controller adds where one command stands for the ranks of several pods: replicas, else stages and TP."""
    if sizes.data_parallel_size % pods == 0 and launching.data_parallel_size_local is None:
        return sizes, launching._replace(data_parallel_size_local=sizes.data_parallel_size // pods)
    return (sizes._replace(nnodes=pods), launching) if sizes.nnodes == 1 else (sizes, launching)


def _value(fact: Maybe[Any] | None) -> Any:
    """The value where it is known."""
    return fact.value if isinstance(fact, Located) else None
