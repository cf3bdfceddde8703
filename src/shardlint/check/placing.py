"""Two facts that need several others: where the ranks run, and the least that the weights take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardlint.findings import Located, Maybe, Unknown
from shardlint.layout.sizes import Sizes

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts
    from shardlint.layout.least import LeastWeights
    from shardlint.layout.placement import Placement
LAUNCHING = ("distributed_executor_backend", "data_parallel_backend", "data_parallel_size_local", "data_parallel_rank")
SIZES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "pp_layer_partition",
    "nnodes",
)


def placement_of(facts: DeploymentFacts) -> Maybe[Placement]:
    """Where the ranks of a deployment run, as far as its command decides that."""
    from shardlint.layout.placement import Launching, place

    sizes = sizes_of(facts)
    if isinstance(sizes, Unknown):
        return sizes
    found = {name: facts.knob(name) for name in LAUNCHING}
    unknown = next((value for value in found.values() if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    values = {name: value.value for name, value in found.items() if isinstance(value, Located)}
    launching = Launching(
        executor=values.get("distributed_executor_backend"),
        data_parallel_backend=values.get("data_parallel_backend") or "mp",
        data_parallel_size_local=values.get("data_parallel_size_local"),
        one_replica_per_process="data_parallel_rank" in values or _is_external(facts),
    )
    placement = place(sizes, launching)
    if isinstance(placement, str):
        return Unknown(f"the engine would not start such a layout: {placement}")
    return Located(placement, origin="derived", source="the sizes and launch options")


def _is_external(facts: DeploymentFacts) -> bool:
    written: Any = facts.deployment.engine_fields.get("data-parallel-external-lb")
    return isinstance(written, Located) and bool(written.value)


def sizes_of(facts: DeploymentFacts) -> Sizes | Unknown:
    """The sizes of a deployment, or the first of them that the file does not tell."""
    from shardlint.layout.laying_out import impossible_size

    found = {name: facts.knob(name) for name in SIZES}
    unknown = next((value for value in found.values() if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    sizes = Sizes(**{name: value.value for name, value in found.items() if isinstance(value, Located)})
    impossible = impossible_size(sizes)
    return Unknown(impossible) if impossible else sizes


def least_weights_of(facts: DeploymentFacts) -> Maybe[LeastWeights]:
    """The least that the weights of a deployment take."""
    from shardlint.layout.least import least_weights

    sizes, geometry = sizes_of(facts), facts.geometry
    quantization, dtype = facts.knob("quantization"), facts.knob("dtype")
    for value in (sizes, geometry, quantization, dtype):
        if isinstance(value, Unknown):
            return value
    assert isinstance(sizes, Sizes) and not isinstance(geometry, Unknown)
    found = least_weights(
        sizes,
        geometry,
        facts.engine.cutting(facts.engine_version.value),
        dtype=dtype.value if isinstance(dtype, Located) else None,
        quantization=quantization.value if isinstance(quantization, Located) else None,
    )
    return found if isinstance(found, Unknown) else Located(found, origin="derived", source=found.basis)
