"""How much of a GPU is left for the KV cache, and what that holds: vLLM's own sum, term by term."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from shardlint.architectures.quantisation import quantisation_of
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator, Geometry
from shardlint.findings import Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.layout.layout import CacheShare, Layout, Rank
from shardlint.layout.overheads import (
    ACTIVATION_MARGIN,
    BASE,
    CONTEXT,
    CONTEXT_OF_SEVERAL,
    DRIVER,
    GIB,
    GRAPHS_OF_A_LAYER,
    GRAPHS_OF_EXPERTS,
    GRAPHS_OF_FEW,
    GRAPHS_OF_MANY,
    MANY_SEQUENCES,
    MXFP4_MARGIN,
    NONE,
    REPACKED_ON,
    SEVERAL_ON_PCIE,
    SPARSE_ATTENTION,
    TOWER,
    V1_SINCE,
    WARM_UP_COPIES,
    WEIGHT_MARGIN,
    WORKSPACE_MARGIN,
    Batch,
    Era,
    Estimate,
    default_batch,
    era,
)
from shardlint.layout.sizes import Sizes

MOST_TOKENS = 2**40
MOST_BYTES = 2**60
MOST_SCALING = 1024
LOGIT_BYTES, ACTIVATION_BYTES = 4, 2
HOST_SHARED = ("12.1",)
"""Compute capabilities of chips without memory of their own, of which the system takes what it likes."""


class Options(NamedTuple):
    """What the engine is told about its memory; None where it is told nothing."""

    release: Version
    gpu_memory_utilization: float
    max_model_len: int
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool = False
    quantization: str | None = None
    kv_cache_memory_bytes: int | None = None
    """Of each GPU, in the place of what `gpu_memory_utilization` leaves."""
    num_gpu_blocks_override: int | None = None
    block_size: int | None = None
    cpu_offload_gb: float = 0
    """GiB of each GPU's weights that stay with the host."""


class Budget(NamedTuple):
    """The memory of one GPU in bytes: `kv = usable - weights - activations - non_torch - graphs`, unless stated."""

    rank: Rank
    in_flight: int
    """Tokens of one step, which a layer with a window keeps beside the window."""
    usable: Estimate
    """`gpu_memory_utilization` of what the driver lets go."""
    weights: Estimate
    activations: Estimate
    non_torch: Estimate
    graphs: Estimate
    """What is counted of the CUDA graphs."""
    outside: Estimate
    """What comes on top of the budget: the process's context, and what is allocated after the KV cache."""
    card: Estimate
    """All that torch sees of the GPU."""
    stated_kv: int | None = None
    """The KV cache where its size is written, whatever else there is."""

    @property
    def kv(self) -> Estimate:
        """What is left for the KV cache; below 0 where nothing is."""
        if self.stated_kv is not None:
            return Estimate(*3 * (self.stated_kv,))
        return self.usable.minus(self._taken)

    @property
    def left_outside(self) -> Estimate:
        """What the budget leaves of the GPU."""
        if self.stated_kv is not None:
            return self.card.minus(self._taken).minus(self.kv)
        return Estimate(*(card - usable for card, usable in zip(self.card, self.usable, strict=True)))

    @property
    def _taken(self) -> Estimate:
        return self.weights.plus(self.activations).plus(self.non_torch).plus(self.graphs)

    def needed(self, tokens: int) -> int:
        """What vLLM sets aside for one sequence of that length here."""
        return self.rank.state_bytes + sum(self._kept(cache).bytes(tokens) for cache in self.rank.caches or ())

    def _kept(self, cache: CacheShare) -> CacheShare:
        return cache if cache.window is None else cache._replace(window=cache.window + self.in_flight)

    def terms(self) -> Iterator[tuple[str, Estimate]]:
        """The terms that are taken off, by the names that people know them by."""
        yield "weights", self.weights
        yield "activations", self.activations
        yield "non-torch", self.non_torch
        if self.graphs.high:
            yield "CUDA graphs", self.graphs


class Memory(NamedTuple):
    """The budgets of all ranks that differ, and what follows for the engine."""

    budgets: tuple[Budget, ...]
    max_model_len: int

    def tightest(self) -> Budget:
        """The budget that decides: the one with the least to spare for a sequence of the full length."""
        if len(self.budgets) == 1:
            return self.budgets[0]
        return min(self.budgets, key=lambda budget: budget.kv.likely - budget.needed(self.max_model_len))

    def longest(self) -> Estimate:
        """The longest sequence that the KV cache holds, in tokens."""
        each = [Estimate(*(longest(budget.needed, kept) for kept in budget.kv)) for budget in self.budgets]
        return Estimate(*(min(lengths) for lengths in zip(*each, strict=True)))

    def is_safe(self) -> bool:
        """Whether even the least that may be left holds a sequence of the full length."""
        return all(
            budget.kv.low >= budget.needed(self.max_model_len) and budget.left_outside.low >= budget.outside.high
            for budget in self.budgets
        )

    def sequences(self) -> Estimate | None:
        """Sequences of the full length that fit at once; None for a model without a cache."""
        needed = [(budget, budget.needed(self.max_model_len)) for budget in self.budgets]
        each = [Estimate(*(max(0.0, kept) / bytes_ for kept in budget.kv)) for budget, bytes_ in needed if bytes_]
        return Estimate(*(min(counts) for counts in zip(*each, strict=True))) if each else None


def longest(needed: Callable[[int], int], available: float) -> int:
    """Tokens of the longest sequence that so many bytes hold, `needed` being what a sequence takes; at most 2^40."""
    low, high = 0, MOST_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        if needed(middle) <= available:
            low = middle
        else:
            high = middle - 1
    return low


def memory(
    layout: Layout, geometry: Geometry | Unknown, cards: Sequence[Accelerator], options: Options
) -> Memory | Unknown:
    """The budgets of a layout on cards that a name may mean (the likely one first), or why there are none."""
    if isinstance(geometry, Unknown):
        return geometry
    card = _card_bytes(cards)
    widths = _widths(geometry, cards[0].compute_capability if cards else None)
    if options.quantization is not None and quantisation_of(geometry) is None:
        return Unknown(f"--quantization {options.quantization} packs the weights while they are loaded")
    if isinstance(card, Unknown):
        return card
    if layout.unknown is not None or not layout.ranks:
        return Unknown(layout.unknown or layout.refused or "the layout has no ranks")
    if widths is None:
        return Unknown(f"the sizes of {geometry.model_id} that decide its activations are not known")
    if options.num_gpu_blocks_override is not None and options.block_size is None:
        return Unknown("the tokens of a block are not written, and blocks are counted", settle_by="--block-size")
    ranks = layout.sizes.world_size if widths.expert_columns else layout.sizes.replica_size
    non_torch = _non_torch(era(options.release), ranks, layout.sizes.pipeline_parallel_size, cards[0].link)
    context = NONE if options.release < V1_SINCE else _context(ranks, cards[0].link)
    start = _Start(card, _batch(options, cards[0], card.likely), non_torch, context, options)
    budgets: dict[object, Budget] = {}
    for rank in layout.ranks:
        if rank.weight_bytes is None or rank.caches is None:
            return Unknown("the bytes of a rank are not known")
        if max(rank.weight_bytes, rank.kv_bytes_per_token_if_all_full or 0, rank.state_bytes) > MOST_BYTES:
            return Unknown("no GPU holds what a rank would have to")
        same = (rank.pipeline_parallel_rank, rank.weight_bytes, rank.caches, rank.states)
        if same not in budgets:
            budgets[same] = _budget(rank, rank.weight_bytes, layout.sizes, widths, start)
    return Memory(tuple(budgets.values()), options.max_model_len)


def _card_bytes(cards: Sequence[Accelerator]) -> Estimate | Unknown:
    """What torch sees of the card: from the least to the most of those that the name may mean, which gets the doubt."""
    sizes = [card.memory_bytes for card in cards if card.memory_bytes]
    if not sizes or len(sizes) < len(cards):
        return Unknown("the memory of the card is not known")
    odd = [card.name for card in cards if card.vendor != "nvidia" or card.compute_capability in HOST_SHARED]
    if odd:
        return Unknown(f"what vLLM needs on {odd[0]} beside weights and cache was never measured")
    return Estimate(min(sizes), max(sizes), max(sizes)).minus(DRIVER)


def _batch(options: Options, card: Accelerator, card_bytes: float) -> Batch:
    default = default_batch(options.release, card.name, card_bytes, options.max_model_len)
    tokens = _possible(options.max_num_batched_tokens) or default.tokens
    return Batch(tokens, min(_possible(options.max_num_seqs) or default.sequences, tokens))


def _possible(stated: int | None) -> int | None:
    return stated if stated is not None and 0 < stated <= MOST_TOKENS else None


class _Widths(NamedTuple):
    hidden: int
    intermediate: int
    vocabulary: int
    expert_columns: int
    """Of all experts that one token goes through, 0 for a dense model."""
    layers: int
    tables: int
    """Bytes of the tables of rotary positions."""
    weight_margin: tuple[float, float, float]
    extra_activations: Estimate


def _widths(geometry: Geometry, capability: str | None) -> _Widths | None:
    hidden, vocabulary = _number(geometry, "hidden_size"), _number(geometry, "vocab_size")
    width = _number(geometry, "moe_intermediate_size") or _number(geometry, "intermediate_size")
    experts = _number(geometry, "num_experts_per_tok") if _number(geometry, "num_experts") else 0
    if not hidden or not vocabulary:
        return None
    intermediate = width if experts else _number(geometry, "intermediate_size")
    repacked = geometry.value("quant_method") == "mxfp4" and capability == REPACKED_ON
    margin = MXFP4_MARGIN if repacked else WEIGHT_MARGIN
    tables, extra, layers = (
        _rotary_bytes(geometry),
        _extra_activations(geometry),
        _number(geometry, "num_hidden_layers"),
    )
    return _Widths(hidden, intermediate, vocabulary, experts * width, layers, tables, margin, extra)


def _extra_activations(geometry: Geometry) -> Estimate:
    tower = any(key in geometry.raw for key in ("vision_config", "audio_config", "visual", "thinker_config"))
    sparse = bool(geometry.text.get("index_topk"))
    return (TOWER if tower else NONE).plus(SPARSE_ATTENTION if sparse else NONE)


def _rotary_bytes(geometry: Geometry) -> int:
    """Sine and cosine of every position: a linear scaling stretches the table, sliding layers have one of their own."""
    positions, width = _number(geometry, "max_position_embeddings"), _number(geometry, "head_dim")
    own = bool(_number(geometry, "sliding_window"))
    return int(ACTIVATION_BYTES * positions * width * (_linear_scaling(geometry) + own))


def _linear_scaling(geometry: Geometry) -> float:
    for key in ("rope_scaling", "rope_parameters"):
        scaling = geometry.text.get(key)
        for one in (scaling, *scaling.values()) if isinstance(scaling, dict) else ():
            if isinstance(one, dict) and "linear" in (one.get("rope_type"), one.get("type")):
                return _factor(one.get("factor"))
    return 1.0


def _factor(stated: object) -> float:
    return float(stated) if isinstance(stated, (int, float)) and 1 <= stated <= MOST_SCALING else 1.0


def _number(geometry: Geometry, name: str) -> int:
    fact = geometry.facts.get(name)
    value = fact.value if isinstance(fact, Located) else None
    return value if isinstance(value, int) and 0 < value < MOST_TOKENS else 0


class _Start(NamedTuple):
    """What is the same for all ranks."""

    card: Estimate
    batch: Batch
    non_torch: Estimate
    context: Estimate
    options: Options


def _budget(rank: Rank, weights: int, sizes: Sizes, widths: _Widths, start: _Start) -> Budget:
    measured, share = era(start.options.release), start.options.gpu_memory_utilization
    last = rank.pipeline_parallel_rank == sizes.pipeline_parallel_size - 1
    graphs = NONE if start.options.enforce_eager else _graphs(start.batch, widths)
    logits = start.batch.sequences * widths.vocabulary * LOGIT_BYTES if last else 0
    warm_up = _strayed(logits, WARM_UP_COPIES)
    return Budget(
        rank,
        start.batch.tokens,
        usable=start.card.scaled(share),
        weights=_held(_strayed(weights + widths.tables, widths.weight_margin), widths, start.options.cpu_offload_gb),
        activations=_activations(measured, widths, start.batch, sizes.tensor_parallel_size, logits),
        non_torch=start.non_torch,
        graphs=graphs if measured.graphs_counted else NONE,
        outside=(NONE if measured.graphs_counted else graphs).plus(warm_up).plus(start.context),
        card=start.card,
        stated_kv=_stated_kv(rank, start.options),
    )


def _stated_kv(rank: Rank, options: Options) -> int | None:
    """Bytes of the KV cache where the options tell them: blocks of tokens win over bytes."""
    blocks, block_size = options.num_gpu_blocks_override, options.block_size
    if blocks is None or block_size is None:
        return options.kv_cache_memory_bytes
    return blocks * sum(math.ceil(cache.layers * cache.bytes_per_token * block_size) for cache in rank.caches or ())


def _held(weights: Estimate, widths: _Widths, offloaded_gib: float) -> Estimate:
    """What stays on the GPU of weights that the host has in part: of layers, by whole parameters, and no embedding."""
    offloaded = offloaded_gib * GIB
    if not offloaded:
        return weights
    parameter = weights.high / max(widths.layers, 1)
    ends = 2 * widths.vocabulary * widths.hidden * ACTIVATION_BYTES
    likely = max(weights.likely - offloaded, 0)
    return Estimate(
        max(weights.low - offloaded - parameter, 0),
        likely,
        max(likely, min(max(weights.high - offloaded, ends), weights.high)),
    )


def _activations(measured: Era, widths: _Widths, batch: Batch, tp: int, logits: int) -> Estimate:
    """The larger of the last stage's sampler and one layer's activations, with the experts' workspace beside them."""
    layer = batch.tokens * ACTIVATION_BYTES * (3 * widths.intermediate // tp + 4 * widths.hidden)
    of_token = 3 * widths.expert_columns // tp + (widths.expert_columns and widths.hidden * _experts(widths))
    workspace = _strayed(batch.tokens * ACTIVATION_BYTES * of_token, WORKSPACE_MARGIN)
    peak = BASE.plus(_strayed(max(layer, measured.logits_copies * logits), ACTIVATION_MARGIN)).plus(workspace)
    return peak.plus(widths.extra_activations)


def _experts(widths: _Widths) -> int:
    return widths.expert_columns // widths.intermediate


def _non_torch(measured: Era, ranks: int, stages: int, link: str | None) -> Estimate:
    """`ranks`: those that talk to each other, of which replicas of a dense model are none of each other's."""
    if ranks == 1:
        return measured.one_rank
    if ranks == stages:
        return measured.stages_only
    several = measured.several_ranks
    return several if link != "pcie" else several._replace(likely=min(several.likely, SEVERAL_ON_PCIE))


def _context(ranks: int, link: str | None) -> Estimate:
    """Of the process on its GPU, with the buffers that exist before the memory is measured."""
    if ranks == 1:
        return CONTEXT
    return CONTEXT_OF_SEVERAL if link != "pcie" else CONTEXT_OF_SEVERAL._replace(likely=CONTEXT.likely)


def _graphs(batch: Batch, widths: _Widths) -> Estimate:
    if batch.sequences < MANY_SEQUENCES:
        return GRAPHS_OF_FEW
    more = widths.layers * GRAPHS_OF_A_LAYER + bool(widths.expert_columns) * GRAPHS_OF_EXPERTS
    return GRAPHS_OF_MANY.plus(Estimate(0, more, more))


def _strayed(size: float, margin: tuple[float, float, float]) -> Estimate:
    return Estimate(*(size * share for share in margin))
