"""Families whose layers keep a recurrent state, all of them or beside some that attend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.ends import EACH_STAGE, EndStages, ends
from shardlint.architectures.blocks.experts import correction_bias, gated_experts, router, shared_experts
from shardlint.architectures.blocks.mlp import gated, plain
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.recurrent import (
    DeltaHeads,
    Mamba1,
    Mamba2,
    convolution_state,
    delta_state,
    gated_delta,
    mamba1,
    mamba1_state,
    mamba2,
    mamba2_state,
    short_convolution,
)
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.towers import QWEN3_VL_NAMES, qwen3_vl
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import qwen_sparse_layers
from shardlint.architectures.rows import CacheRow, Extent, Row, Rows, StateElement, StateRow

LAYERS = "model.layers.#"


def qwen3_next(model: Model) -> Rows:
    """Qwen3-Next: three gated delta nets to each layer that attends, experts in most layers."""
    moe = qwen_sparse_layers(model)
    dense_layers = tuple(layer for layer in model.layers if layer not in frozenset(moe))
    rows = gated_experts_beside_a_shared_one(model, moe)
    if dense_layers:
        rows = (*rows, *gated(MLP, model.hidden_size, model.number("intermediate_size"), dense_layers))
    return _delta_hybrid(model, rows, EndStages("each", "each", "last"), in_one_piece=True)


def qwen3_5(model: Model) -> Rows:
    """Qwen3.5: Qwen3-Next's layers with a dense MLP, its projections apart in the checkpoint."""
    mlp = gated(MLP, model.hidden_size, model.number("intermediate_size"), model.layers)
    return _delta_hybrid(model, mlp, EndStages("each", "last", "last"), in_one_piece=False)


def qwen3_5_moe(model: Model) -> Rows:
    """Qwen3.5 with experts in every layer."""
    rows = gated_experts_beside_a_shared_one(model, model.layers)
    return _delta_hybrid(model, rows, EndStages("each", "last", "last"), in_one_piece=False)


def _delta_hybrid(model: Model, feed_forward: Sequence[Row], stages: EndStages, *, in_one_piece: bool) -> Rows:
    """Gated delta nets and layers that attend with a gate beside each query head."""
    if model.flag("layer_scale"):
        raise Missing(f"{model.geometry.model_id} scales its layers, which is not described")
    attends = listed(model, "full_attention", _each(model, model.odd_number("full_attention_interval", 4)))
    recurs = others(model, attends)
    net = delta_heads(model)
    heads = Heads(model.heads, model.kv_heads, model.head_dim, model.flag("attn_output_gate", default=True))
    bias = model.flag("qkv_bias")
    weights = (
        *gated_delta(f"{LAYERS}.linear_attn", model.hidden_size, net, recurs, in_one_piece=in_one_piece),
        *grouped_query(model, qkv_bias=bias, head_norms="per_head", heads=heads, layers=attends),
        *feed_forward,
        *layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers),
        *ends(model, stages=stages),
    )
    return hybrid(model, weights, attends, (delta_state(net, recurs, state_element(model, "mamba_ssm_dtype")),))


def delta_heads(model: Model) -> DeltaHeads:
    """The heads of the model's gated delta nets."""
    return DeltaHeads(
        model.odd_number("linear_num_key_heads"),
        model.odd_number("linear_key_head_dim"),
        model.odd_number("linear_num_value_heads"),
        model.odd_number("linear_value_head_dim"),
        model.odd_number("linear_conv_kernel_dim"),
    )


def gated_experts_beside_a_shared_one(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    """Qwen's experts, and one for every token that has a gate of its own."""
    hidden, experts = model.hidden_size, model.number("num_experts")
    width, of_experts = model.odd_number("shared_expert_intermediate_size"), model.number("moe_intermediate_size")
    norms = model.flag("norm_topk_prob", default=True)
    return (
        router(f"{MLP}.gate", experts, hidden, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, of_experts, moe, renormalised=norms, one_a_rank=True),
        router(f"{MLP}.shared_expert_gate", 1, hidden, moe),
        *shared_experts(f"{MLP}.shared_expert", hidden, width, moe, under_sequence_parallel="whole"),
    )


UNGATED = ("up_proj", "down_proj")
NEMOTRON_KINDS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def nemotron_h(model: Model) -> Rows:
    """Nemotron-H: one mixer a layer, be it Mamba-2, attention, an MLP or experts, none of them gated."""
    kinds = _nemotron_kinds(model)
    hidden, name, bias = model.hidden_size, f"{LAYERS}.mixer", model.flag("mlp_bias")
    mixer = Mamba2(
        model.odd_number("mamba_num_heads"),
        model.odd_number("mamba_head_dim"),
        model.odd_number("n_groups"),
        model.odd_number("ssm_state_size"),
        model.odd_number("conv_kernel"),
    )
    conv_bias = model.flag("use_conv_bias", default=True)
    recurs, attends, dense, moe = (_of_kind(kinds, kind) for kind in ("mamba", "attention", "mlp", "moe"))
    weights = (
        *mamba2(name, hidden, mixer, recurs, bias=model.flag("use_bias"), conv_bias=conv_bias),
        *(grouped_query(model, layers=attends, name=name) if attends else ()),
        *(plain(name, UNGATED, hidden, model.number("intermediate_size"), dense, bias=bias) if dense else ()),
        *(_nemotron_experts(model, name, moe) if moe else ()),
        norm(f"{LAYERS}.norm", hidden, model.layers),
        *ends(model, stages=EACH_STAGE, norm_name="model.norm_f"),
    )
    element = state_element(model, "mamba_ssm_cache_dtype", "float32")
    rows = hybrid(model, weights, attends, (mamba2_state(mixer, recurs, element),))
    return rows._replace(renames=(("backbone", "model"),))


def _nemotron_kinds(model: Model) -> list[str]:
    """What each layer is, as a word for each or a letter for each."""
    listed, pattern = model.odd("layers_block_type"), model.odd("hybrid_override_pattern")
    if isinstance(pattern, str):
        listed = [NEMOTRON_KINDS.get(letter, letter) for letter in pattern]
    if not isinstance(listed, list) or len(listed) < len(model.layers):
        raise Missing(f"the config of {model.geometry.model_id} does not tell what each layer is")
    strange = [kind for kind in listed if kind not in NEMOTRON_KINDS.values()]
    if strange:
        raise Missing(f"a layer of {model.geometry.model_id} is {strange[0]!r}, which is not described")
    return listed[: len(model.layers)]


def _nemotron_experts(model: Model, name: str, moe: Sequence[int]) -> tuple[Row, ...]:
    """Experts that may work in a narrower space than the rest, and shared ones that do not."""
    hidden, latent, experts = model.hidden_size, model.odd_number("moe_latent_size", 0), model.number("num_experts")
    inside, width = latent or hidden, model.number("moe_intermediate_size")
    column, number, bias = Extent(width, "expert_width"), Extent(experts, "expert"), model.flag("mlp_bias")
    shared = model.odd_number("moe_shared_expert_intermediate_size", 0) * model.odd_number("n_shared_experts", 0)
    renormalised = model.flag("norm_topk_prob")  # its router is always a sigmoid
    rows: tuple[Row, ...] = (
        router(f"{name}.gate", experts, hidden, moe),
        correction_bias(f"{name}.gate", experts, moe),
        Row(f"{name}.experts.w13", (column,), Extent(inside), layers=moe, experts=number, renormalised=renormalised),
        Row(f"{name}.experts.w2", (Extent(inside),), column, layers=moe, experts=number, renormalised=renormalised),
    )
    if shared:
        beside_them = plain(f"{name}.shared_experts", UNGATED, hidden, shared, moe, bias=False)
        rows = (*rows, *(row._replace(under_sequence_parallel="whole") for row in beside_them))
    if not latent:
        return rows
    return (
        *rows,
        Row(f"{name}.fc1_latent_proj", (Extent(latent),), Extent(hidden), bias, moe),
        Row(f"{name}.fc2_latent_proj", (Extent(hidden),), Extent(latent), bias, moe),
    )


def jamba(model: Model) -> Rows:
    """Jamba: Mamba layers with some that attend, each with experts or one MLP, both of the same width."""
    hidden, width, experts = model.hidden_size, model.number("intermediate_size"), model.number("num_experts")
    attends = _periodic(model, model.odd_number("attn_layer_period"), model.odd_number("attn_layer_offset"))
    moe = _periodic(model, model.odd_number("expert_layer_period"), model.odd_number("expert_layer_offset"))
    moe = moe if experts > 1 else ()
    recurs, dense, name = others(model, attends), others(model, moe), f"{LAYERS}.feed_forward"
    mixer = Mamba1(
        model.odd_number("mamba_expand") * hidden,
        model.odd_number("mamba_d_state"),
        time_step_rank(model, "mamba_dt_rank"),
        model.odd_number("mamba_d_conv"),
    )
    biases = {"bias": model.flag("mamba_proj_bias"), "conv_bias": model.flag("mamba_conv_bias", default=True)}
    weights = (
        *mamba1(f"{LAYERS}.mamba", hidden, mixer, recurs, **biases),
        *grouped_query(model, layers=attends, name=LAYERS),
        *(gated(name, hidden, width, dense) if dense else ()),
        *((router(f"{name}.router", experts, hidden, moe),) if moe else ()),
        *(gated_experts(f"{name}.experts", experts, hidden, width, moe, balanceable=False) if moe else ()),
        *layer_norms(("input_layernorm", "pre_ff_layernorm"), hidden, model.layers),
        *ends(model, stages=EACH_STAGE, norm_name="model.final_layernorm", tied=False),
    )
    return hybrid(model, weights, attends, (mamba1_state(mixer, recurs),))


def time_step_rank(model: Model, key: str) -> int:
    """The rank of the time steps; `auto` is a sixteenth of the width."""
    rank = model.odd(key, "auto")
    return -(-model.hidden_size // 16) if rank == "auto" else model.odd_number(key)


def lfm2(model: Model) -> Rows:
    """LFM2: short convolutions with some layers that attend; always tied."""
    return _lfm2(model, _lfm2_mlp(model))


def lfm2_moe(model: Model) -> Rows:
    """LFM2 with experts in all but the first layers."""
    dense_layers = model.layers[: model.odd_number("num_dense_layers", 0)]
    moe, hidden, name = model.layers[len(dense_layers) :], model.hidden_size, f"{LAYERS}.feed_forward"
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    norms = model.flag("norm_topk_prob")
    rows = (
        *_lfm2_gated(name, hidden, model.number("intermediate_size"), dense_layers),
        router(f"{name}.gate", experts, hidden, moe),
        *((correction_bias(f"{name}.gate", experts, moe),) if model.flag("use_expert_bias") else ()),
        *gated_experts(f"{name}.experts", experts, hidden, width, moe, renormalised=norms),
    )
    return _lfm2(model, rows)


def _lfm2(model: Model, feed_forward: Sequence[Row]) -> Rows:
    hidden, name = model.hidden_size, f"{LAYERS}.short_conv"
    attends = listed(model, "full_attention", tuple(model.numbers("full_attn_idxs")) or None)
    recurs, kernel = others(model, attends), model.odd_number("conv_L_cache")
    width = model.odd_number("conv_dim", hidden)
    attention = grouped_query(model, layers=attends, output="out_proj", head_norms="per_head")
    weights = (
        *short_convolution(name, width, kernel, recurs, bias=model.flag("conv_bias")),
        *(row._replace(name=row.name.replace("_norm", "_layernorm")) for row in attention),
        *feed_forward,
        *layer_norms(("operator_norm", "ffn_norm"), hidden, model.layers),
        *ends(model, stages=EndStages("each", "last", "last"), norm_name="model.embedding_norm", tied=True),
    )
    return hybrid(model, weights, attends, (convolution_state(width, kernel, recurs),))


def _lfm2_mlp(model: Model) -> tuple[Row, ...]:
    hidden, width, name = model.hidden_size, model.number("intermediate_size"), f"{LAYERS}.feed_forward"
    if model.flag("block_auto_adjust_ff_dim", default=True):
        multiplier, multiple = model.odd("block_ffn_dim_multiplier", 1), model.odd_number("block_multiple_of", 256)
        known = isinstance(multiplier, (int, float)) and not isinstance(multiplier, bool) and 0 < multiplier < 1000
        if not known or not multiple:
            raise Missing(f"{model.geometry.model_id} has MLPs in steps of {multiple!r}, times {multiplier!r}")
        width = -(-int(multiplier * int(2 * width / 3)) // multiple) * multiple
    return _lfm2_gated(name, hidden, width, model.layers)


def _lfm2_gated(name: str, hidden: int, width: int, layers: Sequence[int]) -> tuple[Row, ...]:
    merged, down = gated(name, hidden, width, layers)
    return (merged._replace(name=f"{name}.w13"), down._replace(name=f"{name}.w2"))


def hybrid(model: Model, weights: Sequence[Row], attends: Sequence[int], states: tuple[StateRow, ...]) -> Rows:
    """Keys and values of the layers that attend, states of the others."""
    kept: tuple[CacheRow, ...] = (cache(model, attends),) if attends else ()
    return Rows(
        tuple(row for row in weights if row.stage != "layer" or row.layers),
        kept,
        len(model.layers),
        states=tuple(state for state in states if state.layers),
    )


def state_element(model: Model, key: str, default: str = "") -> StateElement:
    """The type of a state's elements, as a key of the config asks for it."""
    return "float32" if model.odd(key, default) == "float32" else "model"


def listed(model: Model, kind: str, otherwise: Sequence[int] | None) -> Sequence[int]:
    """The layers that `layer_types` says are of this kind; where it is absent, `otherwise`, or else nobody knows."""
    kinds = model.odd("layer_types")
    if not isinstance(kinds, list):
        if otherwise is None:
            raise Missing(f"the config of {model.geometry.model_id} does not tell layer_types")
        return otherwise
    return tuple(layer for layer, one in zip(model.layers, kinds, strict=False) if one == kind)


def _of_kind(kinds: Sequence[str], wanted: str) -> tuple[int, ...]:
    return tuple(layer for layer, kind in enumerate(kinds) if kind == wanted)


def _periodic(model: Model, period: int, offset: int) -> tuple[int, ...]:
    if period < 1:
        raise Missing(f"{model.geometry.model_id} has a period of {period} layers")
    return tuple(layer for layer in model.layers if layer % period == offset)


def _each(model: Model, period: int) -> tuple[int, ...]:
    return _periodic(model, period, period - 1)


def others(model: Model, layers: Sequence[int]) -> tuple[int, ...]:
    taken = frozenset(layers)
    return tuple(layer for layer in model.layers if layer not in taken)


FAMILIES: Mapping[str, Family] = {
    "JambaForCausalLM": jamba,
    "Lfm2ForCausalLM": lfm2,
    "Lfm2MoeForCausalLM": lfm2_moe,
    "NemotronHForCausalLM": nemotron_h,
    "Qwen3NextForCausalLM": qwen3_next,
    "Qwen3_5ForCausalLM": qwen3_5,
    "Qwen3_5ForConditionalGeneration": WithTower(qwen3_5, qwen3_vl, QWEN3_VL_NAMES),
    "Qwen3_5MoeForCausalLM": qwen3_5_moe,
    "Qwen3_5MoeForConditionalGeneration": WithTower(qwen3_5_moe, qwen3_vl, QWEN3_VL_NAMES),
}
"""Architecture class -> family."""
