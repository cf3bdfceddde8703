"""Mamba, and families that put it beside attention in every layer or between such layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.ends import EACH_STAGE, ends
from shardlint.architectures.blocks.experts import gated_experts, router
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.recurrent import Mamba1, Mamba2, mamba1, mamba1_state, mamba2, mamba2_state
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.hybrid import hybrid, listed, others, time_step_rank
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import listed_as
from shardlint.architectures.rows import Extent, Row, Rows

LAYER = "model.layers.#"
BACKBONE = "backbone.layers.#"


def mamba(model: Model) -> Rows:
    """Mamba, and Falcon-Mamba, whose norms inside have no weights: no layer attends."""
    hidden, layers = model.hidden_size, model.layers
    mixer = Mamba1(
        model.odd_number("intermediate_size", model.odd_number("expand", 2) * hidden),
        model.odd_number("state_size"),
        time_step_rank(model, "time_step_rank"),
        model.odd_number("conv_kernel"),
    )
    bias, conv_bias = model.flag("use_bias"), model.flag("use_conv_bias", default=True)
    rows = mamba1(f"{BACKBONE}.mixer", hidden, mixer, layers, bias=bias, conv_bias=conv_bias, normed=False)
    weights = (*rows, norm(f"{BACKBONE}.norm", hidden, layers), *_backbone_ends(model))
    return hybrid(model, weights, (), (mamba1_state(mixer, layers),))


def mamba_2(model: Model) -> Rows:
    """Mamba 2: no layer attends."""
    hidden, layers = model.hidden_size, model.layers
    mixer = Mamba2(
        model.odd_number("num_heads"),
        model.odd_number("head_dim"),
        model.odd_number("n_groups"),
        model.odd_number("state_size"),
        model.odd_number("conv_kernel"),
    )
    _same_width(model, mixer, model.odd_number("intermediate_size", model.odd_number("expand", 2) * hidden))
    bias, conv_bias = model.flag("use_bias"), model.flag("use_conv_bias", default=True)
    rows = mamba2(f"{BACKBONE}.mixer", hidden, mixer, layers, bias=bias, conv_bias=conv_bias)
    weights = (*rows, norm(f"{BACKBONE}.norm", hidden, layers), *_backbone_ends(model))
    return hybrid(model, weights, (), (mamba2_state(mixer, layers),))


def _backbone_ends(model: Model) -> tuple[Row, ...]:
    """Embedding, final norm and output head, all on every stage."""
    names = {"model.embed_tokens": "backbone.embeddings"}
    rows = ends(model, stages=EACH_STAGE, norm_name="backbone.norm_f")
    return tuple(row._replace(name=names.get(row.name, row.name)) for row in rows)


def _same_width(model: Model, mixer: Mamba2, width: int) -> None:
    """Raises Missing where the heads are not as wide together as the layer, which is not described."""
    if mixer.heads * mixer.width != width:
        raise Missing(f"{model.geometry.model_id} has {mixer.heads} state heads of {mixer.width} in a width of {width}")


def _mixer(model: Model, width: int) -> Mamba2:
    """The Mamba-2 mixer of Granite and Falcon, under the names of their configs."""
    mixer = Mamba2(
        model.odd_number("mamba_n_heads"),
        model.odd_number("mamba_d_head"),
        model.odd_number("mamba_n_groups"),
        model.odd_number("mamba_d_state"),
        model.odd_number("mamba_d_conv"),
    )
    _same_width(model, mixer, width)
    return mixer


def falcon_h1(model: Model) -> Rows:
    """Falcon-H1: attention and a Mamba-2 mixer side by side in every layer."""
    hidden, layers = model.hidden_size, model.layers
    mixer = _mixer(model, model.odd_number("mamba_d_ssm", model.odd_number("mamba_expand", 2) * hidden))
    bias, conv_bias = model.flag("mamba_proj_bias"), model.flag("mamba_conv_bias", default=True)
    normed = model.flag("mamba_rms_norm")
    name = f"{LAYER}.mamba.mamba"
    weights = (
        *grouped_query(model, name=f"{LAYER}.self_attn"),
        *mamba2(name, hidden, mixer, layers, bias=bias, conv_bias=conv_bias, normed=normed),
        *gated(f"{LAYER}.feed_forward", hidden, model.number("intermediate_size"), layers),
        *layer_norms(("input_layernorm", "pre_ff_layernorm"), hidden, layers),
        *ends(model, norm_name="model.final_layernorm"),
    )
    return hybrid(model, weights, layers, (mamba2_state(mixer, layers),))


def granite_hybrid(model: Model) -> Rows:
    """Granite 4: Mamba-2 layers with some that attend; experts and a shared MLP in each, or the MLP alone."""
    hidden, layers, experts = model.hidden_size, model.layers, model.number_or_none("num_experts")
    attends = listed(model, "attention", None)
    recurs, bias = others(model, attends), model.flag("attention_bias")
    mixer, moe = _mixer(model, model.odd_number("mamba_expand") * hidden), f"{LAYER}.block_sparse_moe"
    proj_bias, conv_bias = model.flag("mamba_proj_bias"), model.flag("mamba_conv_bias", default=True)
    weights = (
        *mamba2(f"{LAYER}.mamba", hidden, mixer, recurs, bias=proj_bias, conv_bias=conv_bias),
        *grouped_query(model, qkv_bias=bias, output_bias=bias, layers=attends),
        *((router(f"{moe}.gate", experts, hidden, layers),) if experts else ()),
        *(_granite_experts(model, f"{moe}.experts", experts) if experts else ()),
        *_shared_mlp(model),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers),
        *ends(model, stages=EACH_STAGE),
    )
    return hybrid(model, weights, attends, (mamba2_state(mixer, recurs),))


def _granite_experts(model: Model, name: str, experts: int) -> tuple[Row, ...]:
    width = model.number("intermediate_size")
    return gated_experts(name, experts, model.hidden_size, width, model.layers, renormalised=True, balanceable=False)


def _shared_mlp(model: Model) -> tuple[Row, ...]:
    width, name = model.odd_number("shared_intermediate_size", 0), f"{LAYER}.shared_mlp"
    if not width:
        return ()
    merged, down = gated(name, model.hidden_size, width, model.layers)
    return (merged._replace(name=f"{name}.input_linear", fuses=()), down._replace(name=f"{name}.output_linear"))


ZAMBA2_HYBRIDS = (6, 12, 18, 24, 30, 36, 42, 47, 51)
"""What the config class takes where the key is absent."""


def zamba2(model: Model) -> Rows:
    """Zamba 2: Mamba-2 in every layer; a few blocks of attention and an MLP that some of them share, with adapters."""
    hidden, layers = model.hidden_size, model.layers
    hybrids = listed_as(model, "layers_block_type", "hybrid", tuple(each for each in ZAMBA2_HYBRIDS if each in layers))
    inner, heads = model.odd_number("mamba_expand") * hidden, model.odd_number("n_mamba_heads")
    if not heads or inner % heads:
        raise Missing(f"{model.geometry.model_id} has {heads} state heads in a width of {inner}")
    sizes = (model.odd_number(f"mamba_{key}") for key in ("ngroups", "d_state", "d_conv"))
    mixer, bias = Mamba2(heads, inner // heads, *sizes), model.flag("add_bias_linear")
    conv_bias = model.flag("use_conv_bias", default=True)
    weights = (
        *mamba2(f"{LAYER}.mamba", hidden, mixer, layers, bias=bias, conv_bias=conv_bias),
        norm(f"{LAYER}.input_layernorm", hidden, layers),
        *(_shared_blocks(model, hybrids, bias=bias) if hybrids else ()),
        *ends(model, stages=EACH_STAGE, norm_name="model.final_layernorm"),
    )
    rows = hybrid(model, weights, (), (mamba2_state(mixer, layers),))
    return rows._replace(caches=(cache(model, hybrids, heads=_wide_heads(model)),) if hybrids else ())


def _wide_heads(model: Model) -> Heads:
    """Of the shared blocks, which attend to what comes in beside what the first layer took in."""
    return Heads(model.heads, model.heads, 2 * model.hidden_size // model.heads)


def _shared_blocks(model: Model, hybrids: Sequence[int], *, bias: bool) -> tuple[Row, ...]:
    """The blocks, as often as there are some, and what each layer that takes one adds to it."""
    name, hidden, rank = (
        f"{LAYER}.shared_transformer",
        Extent(model.hidden_size),
        Extent(model.odd_number("adapter_rank")),
    )
    wide, inner = Extent(2 * model.hidden_size), Extent(model.number("intermediate_size"), "column")
    low, queries = Extent(rank.count, "column"), Extent(model.heads, "query_head", _wide_heads(model).width)
    merged, output = grouped_query(model, heads=_wide_heads(model), layers=hybrids, name=f"{name}.self_attn")
    blocks = (
        merged._replace(contraction=wide),
        output,
        *gated(f"{name}.feed_forward", model.hidden_size, inner.count, hybrids, bias=bias),
        norm(f"{name}.input_layernorm", 2 * model.hidden_size, hybrids),
        norm(f"{name}.pre_ff_layernorm", model.hidden_size, hybrids),
    )
    held = min(model.odd_number("num_mem_blocks"), len(hybrids))
    adapters: tuple[Row, ...] = (
        Row(f"{name}.feed_forward.gate_up_proj_adapter.A", (low,), hidden, layers=hybrids),
        Row(f"{name}.feed_forward.gate_up_proj_adapter.B", (inner, inner), rank, layers=hybrids),
    )
    if model.flag("use_shared_attention_adapter"):
        for part in ("q", "k", "v"):
            adapter = f"{name}.self_attn.linear_{part}_adapter"
            adapters += (Row(f"{adapter}.A", (low,), wide, layers=hybrids),)
            adapters += (Row(f"{adapter}.B", (queries,), rank, layers=hybrids),)
    return (
        *(row._replace(layers=hybrids[:held]) for row in blocks),
        *adapters,
        Row(f"{LAYER}.linear", (hidden,), hidden, layers=hybrids),
    )


FAMILIES: Mapping[str, Family] = {
    "FalconH1ForCausalLM": falcon_h1,
    "FalconMambaForCausalLM": mamba,
    "GraniteMoeHybridForCausalLM": granite_hybrid,
    "Mamba2ForCausalLM": mamba_2,
    "MambaForCausalLM": mamba,
    "Zamba2ForCausalLM": zamba2,
}
"""Architecture class -> family."""
