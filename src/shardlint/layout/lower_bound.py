"""The least that the weights take, for the question whether a replica fits its GPUs at all."""

from __future__ import annotations

from shardlint.architectures import Rows, rows_of
from shardlint.architectures.quantisation import least_bits, quantisation_of
from shardlint.engines.cutting import Cutting
from shardlint.facts import Geometry
from shardlint.findings import Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.layout.dtypes import model_element_bytes
from shardlint.layout.holdings import Holdings
from shardlint.layout.layout import Layout
from shardlint.layout.ranks import expert_rank, place_of
from shardlint.layout.share import Division
from shardlint.layout.sizes import Sizes

DRAFT_LAYERS_SHARE = 0.04
"""Of a checkpoint that may be layers which the engine leaves out (multi-token prediction: up to 2.4 % was seen)."""
BITS_AT_LEAST = 16
"""Of an element of a plain checkpoint, which is built in 16 bits or more."""
SETTLE_BY = "model.safetensors.index.json beside config.json"
ODD_LAYER_KEYS = ("layers_block_type", "hybrid_override_pattern", "block_configs", "ssm_cfg", "attn_layer_period")
"""Keys of a model whose layers are not all alike, so that no matrix can be counted on in each of them."""
ODD_EXPERT_KEYS = ("moe_latent_size", "routed_expert_hidden_size", "expert_dtype")
"""Keys of experts that are narrower, or packed tighter, than the rest of the config says."""
ATTENTION_LAYERS = frozenset(("full_attention", "sliding_attention", "chunked_attention"))


class LowerBound(NamedTuple):
    """Bytes that the weights take at least, before caches, activations and everything else."""

    replica_bytes: int
    """Of all GPUs of one replica together."""
    fullest_rank_bytes: int
    """Of the GPU that holds most; the replica's bytes over its GPUs where nobody knows which one that is."""
    basis: str
    """What it was worked out from."""
    exact: bool = False
    """True where these are the very bytes that the engine allocates."""


def weights_at_least(
    layout: Layout,
    geometry: Geometry | Unknown,
    cutting: Cutting,
    *,
    rows: Rows | Unknown | None = None,
    dtype: str | None = None,
    quantization: str | None = None,
) -> LowerBound | Unknown:
    """The best bound there is: every rank's rows, else the checkpoint's published size, else the rows of a quantised
    checkpoint at their fewest bits, else the matrices that any decoder of this size has.

    `layout` is that of the same geometry; `dtype` and `quantization` are the engine's options as written,
    `rows` the model's, worked out where not given.
    """
    if isinstance(geometry, Unknown):
        return geometry
    method = quantisation_of(geometry)
    if isinstance(method, Unknown):
        return method
    if quantization is not None and method is None:
        return Unknown(f"--quantization {quantization} packs the weights while they are loaded")
    return (
        _from_ranks(_weights(layout), layout.sizes, "the rows of every rank", exact=True)
        or _from_checkpoint(layout.sizes, geometry)
        or (
            _from_packed_rows(layout, geometry, rows_of(geometry) if rows is None else rows, cutting, dtype, method)
            if method
            else None
        )
        or _from_matrices(layout.sizes, geometry, least_bits(geometry, method) if method else BITS_AT_LEAST)
        or Unknown(f"neither rows nor checkpoint size of {geometry.model_id} are known", settle_by=SETTLE_BY)
    )


def _weights(layout: Layout) -> list[int | None]:
    return [rank.weight_bytes for rank in layout.ranks]


def _from_ranks(weights: list[int | None], sizes: Sizes, basis: str, *, exact: bool = False) -> LowerBound | None:
    """From the bytes of all ranks; the first replica stands for the others, which hold the same or one expert less."""
    known = [one for one in weights if one is not None]
    if not known or len(known) < len(weights):
        return None
    return LowerBound(sum(known[: sizes.replica_size]), max(known), basis, exact)


def _from_checkpoint(sizes: Sizes, geometry: Geometry) -> LowerBound | None:
    """From the published bytes of the checkpoint: less what may be draft layers, and halved where they are float32."""
    stated = geometry.facts.get("weight_bytes_stated")
    if not isinstance(stated, Located) or sizes.replica_size < 1:
        return None
    dtype = geometry.facts.get("torch_dtype")
    halved = isinstance(dtype, Located) and str(dtype.value).endswith("float32")
    total = int(stated.value * (1 - DRAFT_LAYERS_SHARE)) // (2 if halved else 1)
    return _spread(total, sizes, geometry, "the size of the checkpoint")


def _from_packed_rows(
    layout: Layout, geometry: Geometry, rows: Rows | Unknown, cutting: Cutting, dtype: str | None, method: str
) -> LowerBound | None:
    """From rows whose sizes are known, each that may be packed at the fewest bits of the method, without scales."""
    bits, element = least_bits(geometry, method), model_element_bytes(geometry, dtype)
    if isinstance(rows, Unknown) or bits is None or isinstance(element, Unknown) or not layout.stages:
        return None
    holdings = Holdings(rows, Division.of(layout.sizes, cutting, rows.weights), layout.stages, 8 * element, bits, None)
    places = (place_of(rank.rank, layout.sizes) for rank in layout.ranks)
    weights = [holdings.weight_bytes(place.pipeline, expert_rank(place, layout.sizes)) for place in places]
    return _from_ranks(weights, layout.sizes, f"the rows at {bits} bits an element")


def _from_matrices(sizes: Sizes, geometry: Geometry, bits: int | None) -> LowerBound | None:
    """From the embedding in 16 bits and the largest matrices of every layer at `bits` an element."""
    hidden, vocabulary = _number(geometry, "hidden_size"), _number(geometry, "vocab_size")
    per_hidden = _dense_columns(geometry) or _expert_columns(geometry)
    if not bits or not hidden or not per_hidden:
        return None
    total = hidden * (16 * vocabulary + bits * per_hidden) // 8
    return _spread(total, sizes, geometry, "the embedding and the largest matrices of every layer")


def _dense_columns(geometry: Geometry) -> int:
    """Columns, each as long as the model is wide, of query, output and two feed-forward matrices of all layers."""
    heads, head_dim, width = (
        _number(geometry, name) for name in ("num_attention_heads", "head_dim", "intermediate_size")
    )
    if not heads or not head_dim or not width or not _layers_are_alike(geometry):
        return 0
    return _number(geometry, "num_hidden_layers") * 2 * (heads * head_dim + width)


def _expert_columns(geometry: Geometry) -> int:
    """The same of gate, up and down of all experts, for configs that say from which layer on there are experts."""
    text = geometry.text
    first = text.get("first_k_dense_replace")
    if not isinstance(first, int) or text.get("moe_layer_freq", 1) != 1 or any(key in text for key in ODD_EXPERT_KEYS):
        return 0
    layers = max(0, _number(geometry, "num_hidden_layers") - max(0, first))
    return layers * _number(geometry, "num_experts") * 3 * _number(geometry, "moe_intermediate_size")


def _layers_are_alike(geometry: Geometry) -> bool:
    """Whether each layer is dense, with attention that keeps its heads apart."""
    dense = geometry.facts.get("num_experts")
    plain = isinstance(dense, Located) and dense.value == 0 and not _is_latent(geometry)
    kinds = geometry.text.get("layer_types") or ()
    return (
        plain
        and bool(geometry.text)
        and not any(key in geometry.text for key in ODD_LAYER_KEYS)
        and isinstance(kinds, (list, tuple))
        and all(kind in ATTENTION_LAYERS for kind in kinds if isinstance(kind, str))
    )


def _is_latent(geometry: Geometry) -> bool:
    latent = geometry.facts.get("is_mla")
    return not isinstance(latent, Located) or bool(latent.value)


def _spread(total: int, sizes: Sizes, geometry: Geometry, basis: str) -> LowerBound | None:
    """Some rank holds at least the average; experts are spread over the replicas too, so that they count as one."""
    experts = geometry.facts.get("num_experts")
    dense = isinstance(experts, Located) and experts.value == 0
    ranks = sizes.replica_size if dense else sizes.world_size
    if ranks < 1:
        return None
    return LowerBound(total * sizes.replica_size // ranks, -(-total // ranks), basis)


def _number(geometry: Geometry, name: str) -> int:
    fact = geometry.facts.get(name)
    value = fact.value if isinstance(fact, Located) else None
    return value if isinstance(value, int) and value > 0 else 0
