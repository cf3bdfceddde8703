"""Pipeline stages that hold different numbers of layers, or none."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Layout
from shardlint.rules._words import counted, listed, named, respelled_all

LONGEST_LIST = 64  # stages
LEAST_IDLE_PERCENT = 2.0
"""Below that nothing is gained by another number of stages: 61 layers in 31 and 30 are 1.6 % idle."""
PARTITION = "VLLM_PP_LAYER_PARTITION"


def applies(pipeline_parallel_size: Located[int]) -> bool:
    return pipeline_parallel_size.value > 1


def judge(
    layout: Layout,
    num_hidden_layers: Located[int],
    pipeline_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    pp_layer_partition: Located[str] | None = None,
    supports_pp: Located[bool] | None = None,
) -> Iterator[Problem]:
    layers, stages = num_hidden_layers.value, pipeline_parallel_size.value
    if supports_pp is not None and not supports_pp.value:
        return
    at = pp_layer_partition or pipeline_parallel_size
    even = _even_sizes(layers, pipeline_parallel_size)
    related = ((num_hidden_layers, counted(layers, "layer")),)
    sizes = [stage.number for stage in layout.stages]
    empty = max(stages - layers, sizes.count(0))
    if empty > 0:
        message = (
            f"{layers} layers over {stages} pipeline stages leave {counted(empty, 'stage')} without a layer: "
            f"{named(engine, engine_version)} loads the model, then fails to plan the KV cache of an empty stage"
        )
        yield Problem(
            at, message, f"{stages} stages > {layers} layers" if stages > layers else None, even, related,
            severity="error", effect="fails-while-loading",
        )  # fmt: skip
    elif sizes and len(set(sizes)) > 1:
        largest = max(sizes)
        idle = 100 * (1 - layers / (largest * len(sizes)))
        if idle < LEAST_IDLE_PERCENT:
            return
        yield Problem(
            at,
            f"{layers} layers come out uneven over {stages} pipeline stages ({_sizes(sizes)}): every stage waits for "
            f"{_largest(sizes)} with {counted(largest, 'layer')}",
            f"{layers} layers / ({stages} stages x {largest}) = {100 - idle:.1f} % busy, {idle:.1f} % idle",
            _better_partition(sizes, layers) + even,
            related,
        )


def _sizes(sizes: list[int]) -> str:
    return listed(sizes) if len(sizes) <= LONGEST_LIST else f"{min(sizes)} to {max(sizes)} each"


def _largest(sizes: list[int]) -> str:
    """`stage 3`, counted from 0 as the engine does, or how many there are."""
    largest = [stage for stage, size in enumerate(sizes) if size == max(sizes)]
    return f"stage {largest[0]}" if len(largest) == 1 else f"the {len(largest)} stages"


def _better_partition(sizes: list[int], layers: int) -> tuple[str, ...]:
    """Where somebody wrote a partition whose largest stage is larger than it has to be."""
    fair = -(-layers // len(sizes))
    return (f"leave {PARTITION} out: no stage then has more than {fair} layers",) if max(sizes) > fair else ()


def _even_sizes(layers: int, pipeline_parallel_size: Located[int]) -> tuple[str, ...]:
    stages = pipeline_parallel_size.value
    divisors = [size for size in range(2, min(layers, 2 * stages) + 1) if layers % size == 0]
    nearest = sorted(divisors, key=lambda size: (abs(size - stages), size))
    return respelled_all(pipeline_parallel_size, nearest, "pipeline_parallel_size", most=2)


RULE = Rule("SL202", "uneven-stages", "pp-partition", "note", "slow", judge, applies)
