"""More families with experts: Granite, Ling, K-EXAONE, Hunyuan 3, Trinity, Step 3.5 and MiMo-V2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, grouped_query
from shardlint.architectures.blocks.experts import (
    correction_bias,
    gated_experts,
    is_renormalised,
    router,
    shared_experts,
)
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, norm
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.families.relatives import granite_sinks
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import listed_as, listed_as_sliding, not_zero
from shardlint.architectures.rows import CacheRow, ElementType, Extent, Row, Rows

ATTENTION = "model.layers.#.self_attn"


def granite_moe(model: Model) -> Rows:
    """Granite 3 MoE; with `shared_intermediate_size` one MLP for all tokens beside the experts."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    shared = model.odd_number("shared_intermediate_size", 0)
    renames = {"gate_up_proj": "input_linear", "down_proj": "output_linear"}
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers, renormalised=True, balanceable=False),
        *_renamed(shared_experts("model.layers.#.shared_mlp", hidden, shared, layers), renames),
    )
    attention = (*grouped_query(model), *granite_sinks(model))
    return sparse(model, attention, rows, sliding=listed_as_sliding(model, ()))


def bailing_moe(model: Model) -> Rows:
    """Ling and Ring: the router's type, its correction and the head norms by keys."""
    moe, hidden, name = _from_the_first_sparse_one(model), model.hidden_size, "model.layers.#.attention"
    bias, experts, width = model.flag("use_bias"), model.number("num_experts"), model.number("moe_intermediate_size")
    corrected = model.flag("moe_router_enable_expert_bias")
    of_shared = model.odd_number("moe_shared_expert_intermediate_size", width)
    shared = of_shared * model.odd_number("num_shared_experts", 0)
    kind: ElementType = "float32" if model.odd("router_dtype") == "fp32" else "model"
    renormalised = model.flag("norm_topk_prob")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, element_type=kind),
        *((_expert_bias(f"{MLP}.gate.expert_bias", experts, moe),) if corrected else ()),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=renormalised, balanceable=False),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe, bias=bias),
        *dense_beside(model, moe, bias=bias),
    )
    attention = grouped_query(
        model,
        qkv_bias=bias or model.flag("use_qkv_bias"),
        output_bias=bias,
        name=name,
        merged="query_key_value",
        output="dense",
    )
    return sparse(model, (*attention, *_bailing_head_norms(model, name)), rows, ends_on_every_stage=False)


def _bailing_head_norms(model: Model, name: str) -> tuple[Row, ...]:
    if not model.flag("use_qk_norm"):
        return ()
    bias = not model.flag("use_rmsnorm")
    parts = ("query_layernorm", "key_layernorm")
    return tuple(norm(f"{name}.{part}", model.head_dim, model.layers, bias=bias) for part in parts)


def exaone_moe(model: Model) -> Rows:
    """K-EXAONE: Qwen3's attention, most of whose layers slide, and DeepSeek's experts."""
    moe, hidden = listed_as(model, "mlp_layer_types", "sparse"), model.hidden_size
    if model.odd("sliding_windows") is not None:
        raise Missing("an EXAONE model with a window of its own for each layer is not described")
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    shared = width * model.odd_number("num_shared_experts", 0)
    bias = model.flag("attention_bias") or model.flag("bias")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe),
        correction_bias(MLP, experts, moe),
        *gated_experts(
            f"{MLP}.experts",
            experts,
            hidden,
            width,
            moe,
            renormalised=model.flag("norm_topk_prob"),
            one_a_rank=True,
        ),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe),
        *dense_beside(model, moe, bias=model.flag("mlp_bias")),
    )
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, sliding=listed_as_sliding(model, ()), ends_on_every_stage=False)


def hy_v3(model: Model) -> Rows:
    """Hunyuan 3: the router in 32 bits; embedding, norm and head stand on every stage."""
    moe, hidden = _from_the_first_sparse_one(model), model.hidden_size
    experts, width = model.number("num_experts"), model.odd_number("expert_hidden_dim")
    shared = width * model.odd_number("num_shared_experts", 0)
    norms = model.flag("route_norm")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, element_type="float32"),
        _expert_bias(f"{MLP}.expert_bias", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=norms, one_a_rank=True),
        *shared_experts(f"{MLP}.shared_mlp", hidden, shared, moe),
        *dense_beside(model, moe),
    )
    return sparse(model, grouped_query(model, head_norms="per_head" if model.flag("qk_norm") else "none"), rows)


def afmoe(model: Model) -> Rows:
    """Trinity: a gate as wide as the attention beside it, and four norms."""
    moe, hidden = model.layers[model.odd_number("num_dense_layers", 0) :], model.hidden_size
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    shared = width * model.odd_number("num_shared_experts", 0)
    norms = model.flag("route_norm") and model.odd("score_func") == "sigmoid"
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, element_type="float32"),
        _expert_bias(f"{MLP}.expert_bias", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=norms),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe),
        *dense_beside(model, moe),
    )
    gates = Extent(model.heads * model.head_dim, "column")
    attention = (
        *grouped_query(model, head_norms="per_head"),
        Row(f"{ATTENTION}.gate_proj", (gates,), Extent(hidden), layers=model.layers),
    )
    around = (*BEFORE_THE_BLOCKS, "pre_mlp_layernorm", "post_mlp_layernorm")
    sliding = listed_as_sliding(model, ())
    return sparse(model, attention, rows, norms=around, sliding=sliding, ends_on_every_stage=False, tied=False)


def step3p5(model: Model) -> Rows:
    """Step 3.5: sliding layers have more query heads than the others, and each head may have a gate."""
    moe, sliding = _step_sparse_layers(model), listed_as_sliding(model, ())
    hidden, name = model.hidden_size, "model.layers.#.moe"
    experts, width = model.odd_number("moe_num_experts"), model.number("moe_intermediate_size")
    norms = model.flag("norm_expert_weight", default=True)
    rows = (
        router(f"{name}.gate", experts, hidden, moe, element_type="float32"),
        _expert_bias(f"{name}.router_bias", experts, moe),
        *gated_experts(f"{name}.experts", experts, hidden, width, moe, renormalised=norms, one_a_rank=True),
        *shared_experts(f"{name}.share_expert", hidden, model.odd_number("share_expert_dim"), moe),
        *dense_beside(model, moe),
    )
    others = tuple(layer for layer in model.layers if layer not in frozenset(sliding))
    attention = (
        *_step_attention(model, model.heads, others),
        *_step_attention(model, _step_sliding_heads(model), sliding),
    )
    return sparse(model, attention, rows, sliding=sliding, ends_on_every_stage=False, tied=False)


def _step_attention(model: Model, heads: int, layers: Sequence[int]) -> tuple[Row, ...]:
    if not layers:
        return ()
    sizes = Heads(heads, model.kv_heads, model.head_dim)
    bias = model.flag("attention_bias")
    rows = grouped_query(model, qkv_bias=bias, head_norms="per_head", heads=sizes, layers=layers)
    if not model.flag("use_head_wise_attn_gate"):
        return rows
    return (*rows, Row(f"{ATTENTION}.g_proj", (Extent(heads, "column"),), Extent(model.hidden_size), layers=layers))


def _step_sliding_heads(model: Model) -> int:
    own = model.odd("num_sliding_attention_heads")
    if own:
        return model.odd_number("num_sliding_attention_heads")
    if model.part("attention_other_setting").get("attention_type") == "sliding_attention":
        return model.part_number("attention_other_setting", "num_attention_heads")
    return model.heads


def _step_sparse_layers(model: Model) -> Sequence[int]:
    if model.odd("mlp_layer_types") is not None:
        return listed_as(model, "mlp_layer_types", "sparse")
    listed = model.odd("moe_layers_enum")
    if listed is None:
        return model.layers[1:]
    numbers = [part.strip() for part in str(listed).split(",")]
    chosen = frozenset(int(part) for part in numbers if part.isdecimal())
    return tuple(layer for layer in model.layers if layer in chosen)


def mimo_v2(model: Model) -> Rows:
    """MiMo-V2: sliding layers have heads of their own, and values are narrower than keys."""
    if model.odd("attention_projection_layout") == "fused_qkv":
        raise Missing("a MiMo model whose checkpoint merges queries, keys and values is not described")
    moe, sliding = (
        not_zero(model, model.odd("moe_layer_freq"), ()),
        not_zero(model, model.odd("hybrid_layer_pattern"), ()),
    )
    hidden, experts = model.hidden_size, model.number("num_experts")
    width = model.number("moe_intermediate_size")
    kind: ElementType = "float32" if model.odd("moe_router_dtype", "float32") == "float32" else "model"
    norms = is_renormalised(model, corrected=True)
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, element_type=kind),
        correction_bias(f"{MLP}.gate", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=norms, one_a_rank=True),
        *dense_beside(model, moe),
    )
    others = tuple(layer for layer in model.layers if layer not in frozenset(sliding))
    full, narrow = _mimo_heads(model, ""), _mimo_heads(model, "swa_")
    attention = (
        *_mimo_attention(model, full, others, sinks=model.flag("add_full_attention_sink_bias")),
        *_mimo_attention(model, narrow, sliding, sinks=model.flag("add_swa_attention_sink_bias")),
    )
    window = model.odd_number("sliding_window_size", model.sliding_window or 0)
    kept = (*_mimo_caches(full, others, None), *_mimo_caches(narrow, sliding, window))
    return sparse(model, attention, rows, cache_rows=kept, ends_on_every_stage=False)


MimoHeads = tuple[int, int, int, int]
"""Query heads, KV heads, width of queries and keys, width of values."""


def _mimo_heads(model: Model, prefix: str) -> MimoHeads:
    heads, keys = model.odd_number(f"{prefix}num_attention_heads"), model.odd_number(f"{prefix}num_key_value_heads")
    width = model.odd_number(f"{prefix}head_dim")
    return heads, keys, width, model.odd_number(f"{prefix}v_head_dim", width)


def _mimo_attention(model: Model, sizes: MimoHeads, layers: Sequence[int], *, sinks: bool) -> tuple[Row, ...]:
    if not layers:
        return ()
    heads, keys, width, value = sizes
    queries, hidden = Extent(heads, "query_head", width), Extent(model.hidden_size)
    outs = (queries, Extent(keys, "kv_head", width), Extent(keys, "kv_head", value))
    bias = model.flag("attention_bias")
    rows = (
        Row(f"{ATTENTION}.qkv_proj", outs, hidden, bias, layers, attention="grouped"),
        Row(f"{ATTENTION}.o_proj", (hidden,), Extent(heads * value, "row"), layers=layers),
    )
    if not sinks:
        return rows
    return (
        *rows,
        Row(f"{ATTENTION}.attention_sink_bias", (queries._replace(unit=1),), layers=layers, quantisable=False),
    )


def _mimo_caches(sizes: MimoHeads, layers: Sequence[int], window: int | None) -> tuple[CacheRow, ...]:
    if not layers:
        return ()
    _, keys, width, value = sizes
    return (CacheRow(layers, Extent(keys, "kv_head"), width + value, "sliding" if window else "full", window),)


def _from_the_first_sparse_one(model: Model) -> Sequence[int]:
    return model.layers[model.odd_number("first_k_dense_replace", 0) :]


def _expert_bias(name: str, experts: int, layers: Sequence[int]) -> Row:
    return Row(name, (Extent(experts),), layers=layers, element_type="float32", quantisable=False)


def _renamed(rows: Sequence[Row], names: Mapping[str, str]) -> tuple[Row, ...]:
    def rename(row: Row) -> Row:
        parent, _, last = row.name.rpartition(".")
        return row._replace(name=f"{parent}.{names[last]}")

    return tuple(rename(row) for row in rows)


FAMILIES: Mapping[str, Family] = {
    "AfmoeForCausalLM": afmoe,
    "BailingMoeForCausalLM": bailing_moe,
    "BailingMoeV2ForCausalLM": bailing_moe,
    "ExaoneMoEForCausalLM": exaone_moe,
    "ExaoneMoeForCausalLM": exaone_moe,
    "GraniteMoeForCausalLM": granite_moe,
    "GraniteMoeSWAForCausalLM": granite_moe,
    "GraniteMoeSharedForCausalLM": granite_moe,
    "HYV3ForCausalLM": hy_v3,
    "MiMoV2FlashForCausalLM": mimo_v2,
    "MiMoV2ForCausalLM": mimo_v2,
    "SarvamMoEForCausalLM": bailing_moe,
    "Step3p5ForCausalLM": step3p5,
}
"""Architecture class -> family."""
