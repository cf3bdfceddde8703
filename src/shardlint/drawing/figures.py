"""The numbers of a layout, each with the sum that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardlint.architectures.rows import CacheRow, Rows
from shardlint.engines.cutting import Cutting
from shardlint.facts import Geometry
from shardlint.findings import Located
from shardlint.findings.records import NamedTuple
from shardlint.findings.words import EACH_ITS_OWN, figure
from shardlint.layout import Division, Layout, Rank
from shardlint.layout.holdings import layers_between
from shardlint.layout.memory import Memory
from shardlint.layout.overheads import Estimate
from shardlint.layout.traffic import Collective, collectives

KIB, MIB, GIB = 2**10, 2**20, 2**30
ELEMENT_BYTES = 2
"""Of hidden states and logits on the wire, where the model computes in 16 bits."""


class Term(NamedTuple):
    """One number of a sum, and where it comes from."""

    symbol: str
    value: str
    source: str


class Figure(NamedTuple):
    """One number of the layout."""

    name: str
    value: str
    formula: str
    terms: tuple[Term, ...] = ()


class Known(NamedTuple):
    """What the figures are worked out from."""

    layout: Layout
    rows: Rows
    geometry: Geometry
    cutting: Cutting
    memory: Memory | None
    memory_unknown: str
    tokens: int
    """Of a prefill step."""
    sequences: int
    """Of a decode step."""


def figures(known: Known) -> Iterator[Figure]:
    """All of them, in the order in which a reader asks."""
    yield from _weights(known)
    yield from _cache(known)
    yield from _capacity(known)
    yield from _traffic(known)
    yield from _pipeline(known)
    yield from _experts(known)


def _weights(known: Known) -> Iterator[Figure]:
    held = [rank for rank in known.layout.ranks if rank.weight_bytes is not None]
    if not held:
        return
    fullest = max(held, key=lambda rank: rank.weight_bytes or 0)
    emptiest = min(held, key=lambda rank: rank.weight_bytes or 0)
    total = sum(rank.weight_bytes or 0 for rank in held)
    sizes = known.layout.sizes
    terms = (
        Term("rank", str(fullest.rank), "the rank that holds the most"),
        Term("layers", _layers(fullest), "its pipeline stage"),
        Term("TP", str(sizes.tensor_parallel_size), "tensor_parallel_size"),
    )
    yield Figure(
        "weights on the fullest GPU",
        _gib(fullest.weight_bytes or 0),
        "the bytes of every row of the stage, each cut by the engine's table",
        terms,
    )
    if emptiest.weight_bytes != fullest.weight_bytes:
        yield Figure(
            "weights on the emptiest GPU", _gib(emptiest.weight_bytes or 0), f"the same for rank {emptiest.rank}"
        )
    yield Figure("weights on all GPUs", _gib(total), _over(held))


def _cache(known: Known) -> Iterator[Figure]:
    """Bytes of keys and values of one token, on a GPU and over all GPUs of a replica."""
    ranks = [rank for rank in known.layout.ranks if rank.kv_bytes_per_token_if_all_full is not None]
    if not ranks or not known.rows.caches:
        return
    most = max(ranks, key=lambda rank: rank.kv_bytes_per_token_if_all_full or 0)
    copy = [rank for rank in ranks if rank.data_parallel_rank == 0]
    over_all = sum(rank.kv_bytes_per_token_if_all_full or 0 for rank in copy)
    division = Division.of(known.layout.sizes, known.cutting, known.rows.weights)
    yield Figure(
        "KV bytes of a token on a GPU",
        _kib(most.kv_bytes_per_token_if_all_full or 0),
        "layers of the stage x KV heads of the rank x elements of a head x their bytes, over all kinds of layers",
        tuple(_cache_terms(known.rows.caches, division, most)),
    )
    yield Figure("KV bytes of a token over all GPUs of a replica", _kib(over_all), _over(copy))
    yield from _replication(known, over_all)


def _cache_terms(rows: Sequence[CacheRow], division: Division, rank: Rank) -> Iterator[Term]:
    elements = 0
    for row in rows:
        layers = layers_between(row.layers, rank.layers) if rank.layers else 0
        heads = division.share(row.heads, 0) or 0
        elements += layers * heads * row.elements_per_head
        yield Term("layers", str(layers), f"of layers {_layers(rank)}, those with {row.kind} attention")
        yield Term("KV heads", str(heads), f"max(1, {row.heads.count} / TP {division.tensor})")
        yield Term("elements of a head", str(row.elements_per_head), "keys and values together")
    if elements and all(row.element == "cache" and row.tokens == 1 for row in rows):
        yield Term(
            "their bytes", f"{(rank.kv_bytes_per_token_if_all_full or 0) / elements:g}", "of an element of the cache"
        )


def _replication(known: Known, over_all: float) -> Iterator[Figure]:
    heads = [row.heads.count for row in known.rows.caches]
    ways = known.layout.sizes.tensor_parallel_size
    copies = max((ways / count for count in heads if count < ways), default=1.0)
    if copies > 1:
        yield Figure(
            "copies of each KV head",
            f"{copies:g}",
            "TP / KV heads, where there are more ranks than heads",
            (Term("TP", str(ways), "tensor_parallel_size"), Term("KV heads", str(min(heads)), "the model")),
        )


def _capacity(known: Known) -> Iterator[Figure]:
    memory = known.memory
    if memory is None:
        yield Figure("KV cache of a GPU", "not known", known.memory_unknown)
        return
    budget = memory.tightest()
    terms = [Term("usable", _estimate(budget.usable), "gpu_memory_utilization of what the driver lets go")]
    terms += [Term(name, _estimate(part), "taken off") for name, part in budget.terms()]
    yield Figure(
        "KV cache of the tightest GPU",
        _estimate(budget.kv),
        "usable - " + " - ".join(name for name, _ in budget.terms()),
        tuple(terms),
    )
    sequences = memory.sequences()
    if sequences is None:
        return
    needed, length = budget.needed(memory.max_model_len), memory.max_model_len
    of_one = Term("KV bytes of one", _gib(needed), f"of {length} tokens on rank {budget.rank.rank}")
    yield from _in_replicas(
        known,
        f"requests of {length} tokens at once",
        sequences.whole(),
        "KV cache of a GPU / KV bytes of one such request on it, the whole ones",
        of_one,
    )
    yield from _in_replicas(
        known,
        "tokens of KV cache",
        sequences.scaled(length).whole(),
        "KV cache of a GPU / KV bytes of one such request on it x its tokens",
        of_one,
    )


def _in_replicas(known: Known, name: str, each: Estimate, formula: str, term: Term) -> Iterator[Figure]:
    """What one replica holds, and all of them where there are several."""
    yield Figure(f"{name} in each replica", _numbers(each), formula, (term,))
    replicas = known.layout.sizes.data_parallel_size
    if replicas > 1:
        terms = (Term("replicas", str(replicas), f"data_parallel_size: {EACH_ITS_OWN}"),)
        yield Figure(f"{name} in all {replicas} replicas", _numbers(each.scaled(replicas)), "each x replicas", terms)


def _traffic(known: Known) -> Iterator[Figure]:
    hidden, vocabulary = _fact(known, "hidden_size"), _fact(known, "vocab_size")
    if hidden is None:
        return
    for each in collectives(known.layout.sizes, known.rows, known.layout.stages, hidden, vocabulary):
        decode = each.message_bytes(known.sequences, known.sequences, ELEMENT_BYTES)
        prefill = each.message_bytes(known.tokens, known.sequences, ELEMENT_BYTES)
        step = f"{known.sequences} in a decode step" if known.sequences > 1 else "one token decoded"
        yield Figure(
            _name(each, len(known.layout.stages)),
            f"{each.count} x {_size(prefill)} for {known.tokens} tokens; {each.count} x {_size(decode)} for {step}",
            _formula(each),
            (
                _step(known, each),
                Term("elements", str(each.elements), "vocabulary" if each.per_sequence else "hidden_size"),
                Term("bytes", str(ELEMENT_BYTES), "of an element in 16 bits"),
            ),
        )


def _step(known: Known, each: Collective) -> Term:
    if each.per_sequence:
        return Term("sequences", str(known.sequences), "of the step: one token is sampled for each")
    return Term("T", str(known.tokens), "tokens of the step")


PURPOSES = {
    "layer": "after attention and after the MLP of each layer",
    "embedding": "after the embedding",
    "dispatch": "tokens to the experts",
    "combine": "sums of the experts",
    "sequence": "each rank's own tokens back to all",
    "boundary": "hidden_states and residual to the next stage",
    "logits": "logits of the tokens that are sampled",
}


def _name(each: Collective, stages: int) -> str:
    where = f"stage {each.stage}: " if stages > 1 else ""
    plural = "" if each.count == 1 else "s"
    return f"{where}{each.count} {each.operation}{plural} in each {each.group} group ({PURPOSES[each.purpose]})"


def _formula(each: Collective) -> str:
    tokens = "sequences" if each.per_sequence else "T"
    tensors = f"{each.tensors} tensors x " if each.tensors > 1 else ""
    return f"{tensors}{tokens} x elements x bytes"


def _pipeline(known: Known) -> Iterator[Figure]:
    stages = known.layout.stages
    if len(stages) < 2:
        return
    count = len(stages)
    busy = ", ".join(f"{batches}: {batches / count:.0%}" for batches in _batches(count))
    yield Figure(
        "share of the time that a stage works, by batches in flight",
        busy,
        "min(1, batches / PP): with fewer batches than stages some stage always waits",
        (Term("PP", str(count), "pipeline_parallel_size"),),
    )
    most, layers = max(stage.number for stage in stages), sum(stage.number for stage in stages)
    if most * count > layers:
        yield Figure(
            "what uneven stages cost",
            f"{most * count / layers - 1:.1%} of a step's time",
            "largest stage x PP / layers - 1: all wait for the largest stage",
            (
                Term("largest stage", str(most), "layers"),
                Term("PP", str(count), "pipeline_parallel_size"),
                Term("layers", str(layers), "num_hidden_layers"),
            ),
        )


def _batches(stages: int) -> Iterator[int]:
    yield from sorted({1, max(1, stages // 2), stages})


def _experts(known: Known) -> Iterator[Figure]:
    experts, sizes = _fact(known, "num_experts"), known.layout.sizes
    if not experts or not sizes.enable_expert_parallel or sizes.expert_group_size < 2:
        return
    group = sizes.expert_group_size
    least, more = divmod(experts + sizes.num_redundant_experts, group)
    value = str(least) if not more else f"{least + 1} on {more} ranks, {least} on {group - more}"
    yield Figure(
        "experts of each layer on a rank",
        value,
        "experts / (TP x DP x PCP), the remainder to the first ranks",
        (Term("experts", str(experts), "the model"), Term("TP x DP x PCP", str(group), "the expert parallel group")),
    )


def _fact(known: Known, name: str) -> int | None:
    fact = known.geometry.facts.get(name)
    return fact.value if isinstance(fact, Located) and isinstance(fact.value, int) else None


def _over(ranks: Sequence[Rank]) -> str:
    return f"the sum over {len(ranks)} rank{'' if len(ranks) == 1 else 's'}"


def _layers(rank: Rank) -> str:
    return f"{rank.layers.start}-{rank.layers.stop - 1}" if rank.layers else "not known"


def _gib(number: float) -> str:
    return f"{number / GIB:.2f} GiB"


def _kib(number: float) -> str:
    return f"{figure(number / KIB)} KiB"


def _size(number: float) -> str:
    return f"{figure(number / MIB)} MiB" if number >= MIB else f"{figure(number / KIB)} KiB"


def _estimate(estimate: Estimate) -> str:
    if estimate.low == estimate.high:
        return _gib(estimate.likely)
    return f"about {_gib(estimate.likely)} ({estimate.low / GIB:.2f} to {estimate.high / GIB:.2f})"


def _numbers(estimate: Estimate) -> str:
    low, likely, high = (f"{each:,}" for each in estimate)
    return likely if low == high else f"about {likely} ({low} to {high})"
