"""Families with mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import cache, grouped_query
from shardlint.architectures.blocks.block_sparse import block_sparse, block_sparse_caches
from shardlint.architectures.blocks.experts import (
    correction_bias,
    gated_experts,
    is_renormalised,
    router,
    shared_experts,
)
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import (
    deepseek_sparse_layers,
    each,
    ernie_sparse_layers,
    every_layer_slides,
    llama4_chunked_layers,
    not_zero,
    qwen_sliding_layers,
    qwen_sparse_layers,
)
from shardlint.architectures.rows import Extent, Row, Rows


def mixtral(model: Model) -> Rows:
    """Mixtral: `intermediate_size` is the width of an expert, and every layer has experts."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers, renormalised=True),
    )
    return sparse(model, grouped_query(model), rows, sliding=every_layer_slides(model))


def phimoe(model: Model) -> Rows:
    """Phi-3.5-MoE: Mixtral's experts between LayerNorms, with biases whatever its keys say."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers, balanceable=False),
    )
    attention = grouped_query(model, qkv_bias=True, output_bias=True)
    return sparse(model, attention, rows, sliding=every_layer_slides(model), norm_bias=True, head_bias=True)


def olmoe(model: Model) -> Rows:
    """OLMoE: `intermediate_size` is the width of an expert; head norms over the whole width."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.gate", experts, hidden, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers, balanceable=False),
    )
    return sparse(model, grouped_query(model, head_norms="whole_width"), rows)


def qwen2_moe(model: Model) -> Rows:
    """Qwen1.5-MoE and Qwen2-MoE: a shared expert with its own gate beside the others."""
    moe, hidden = qwen_sparse_layers(model), model.hidden_size
    rows = (
        *_qwen_experts(model, moe, router_quantisable=False, balanceable=False),
        *gated(f"{MLP}.shared_expert", hidden, model.odd_number("shared_expert_intermediate_size"), moe),
        router(f"{MLP}.shared_expert_gate", 1, hidden, moe),
    )
    attention = grouped_query(model, qkv_bias=model.flag("qkv_bias", default=True))
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def qwen3_moe(model: Model) -> Rows:
    """Qwen3-MoE: head norms; its router is an ordinary linear layer for quantisation."""
    rows = _qwen_experts(model, qwen_sparse_layers(model), router_quantisable=True, balanceable=True)
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def _qwen_experts(model: Model, moe: Sequence[int], *, router_quantisable: bool, balanceable: bool) -> tuple[Row, ...]:
    """Router and experts of the sparse layers, and the dense MLP of the others."""
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    return (
        router(f"{MLP}.gate", experts, hidden, moe, quantisable=router_quantisable),
        *gated_experts(
            f"{MLP}.experts",
            experts,
            hidden,
            width,
            moe,
            renormalised=is_renormalised(model, corrected=False),
            one_a_rank=True,
            balanceable=balanceable,
        ),
        *dense_beside(model, moe),
    )


def gpt_oss(model: Model) -> Rows:
    """gpt-oss: biases everywhere, a sink for every head, and every other layer slides, the first one too."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.attn"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.router", experts, hidden, layers, bias=True),
        *(
            _asserting_the_world(row)
            for row in gated_experts(f"{MLP}.experts", experts, hidden, width, layers, bias=True, balanceable=False)
        ),
    )
    sinks = Row(f"{name}.sinks", (Extent(model.heads, "query_head"),), layers=layers, quantisable=False)
    merged, *others = grouped_query(model, qkv_bias=True, output_bias=True, name=name)
    # its own arithmetic leaves no head where there are fewer KV heads than ranks, and divides by that
    merged = merged._replace(outs=tuple(out._replace(one_a_rank=out.piece == "kv_head") for out in merged.outs))
    return sparse(model, (merged, *others, sinks), rows, sliding=layers[::2], tied=False)


def _asserting_the_world(row: Row) -> Row:
    """gpt-oss asserts that the width of its experts divides by all ranks, of whatever kind of parallelism."""
    outs = tuple(out._replace(divides_by_world=out.piece == "expert_width") for out in row.outs)
    return row._replace(outs=outs)


def glm4_moe(model: Model) -> Rows:
    """GLM-4.5 to 4.7: the router in 32 bits, shared experts, and dense layers first."""
    moe = deepseek_sparse_layers(model)
    attention = grouped_query(
        model,
        qkv_bias=model.flag("attention_bias"),
        head_norms="per_head" if model.flag("use_qk_norm") else "none",
    )
    return sparse(model, attention, glm4_feed_forward(model, moe), ends_on_every_stage=False, tied=False)


def glm4_feed_forward(model: Model, moe: Sequence[int]) -> tuple[Row, ...]:
    """Router and its correction in 32 bits, experts, shared experts that are always cut, and the dense layers."""
    hidden, experts, width = model.hidden_size, model.number("num_experts"), model.number("moe_intermediate_size")
    return (
        router(f"{MLP}.gate", experts, hidden, moe, element_type="float32"),
        correction_bias(f"{MLP}.gate", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, renormalised=True),
        *shared_experts(f"{MLP}.shared_experts", hidden, width * model.odd_number("n_shared_experts", 0), moe),
        *dense_beside(model, moe),
    )


def minimax_m2(model: Model) -> Rows:
    """MiniMax-M2: the router in 32 bits, and head norms over the whole width that are cut as the heads are."""
    attention = grouped_query(model, qkv_bias=model.flag("attention_bias"), head_norms="cut_with_the_heads")
    return sparse(
        model,
        attention,
        _minimax_experts(model, model.layers, renormalised=True),
        ends_on_every_stage=False,
        tied=False,
    )


def _minimax_experts(model: Model, moe: Sequence[int], *, renormalised: bool) -> tuple[Row, ...]:
    """Router, its correction where a key asks for one, and experts of `intermediate_size`."""
    hidden, name = model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    corrected = (correction_bias(name, experts, moe),) if model.flag("use_routing_bias") else ()
    return (
        router(f"{name}.gate", experts, hidden, moe, element_type="float32"),
        *corrected,
        *gated_experts(
            f"{name}.experts",
            experts,
            hidden,
            width,
            moe,
            renormalised=renormalised,
            one_a_rank=True,
            balanceable=False,
        ),
    )


def minimax_m3(model: Model) -> Rows:
    """MiniMax-M3 without its tower: block-sparse attention that picks its blocks by an index of its own."""
    hidden, name = model.hidden_size, "model.layers.#.block_sparse_moe"
    moe = not_zero(model, model.odd("moe_layer_freq"), model.layers)
    indexed = not_zero(model, model.part("sparse_attention_config").get("sparse_attention_freq"), ())
    width = model.number("intermediate_size") * model.odd_number("n_shared_experts", 0)
    rows = (
        *_minimax_experts(model, moe, renormalised=False),
        *shared_experts(f"{name}.shared_experts", hidden, width, moe),
        *dense_beside(model, moe, "dense_intermediate_size"),
    )
    kept = block_sparse_caches(model, indexed)
    return sparse(model, block_sparse(model, indexed), rows, cache_rows=kept, ends_on_every_stage=False, tied=False)


def llama4(model: Model) -> Rows:
    """Llama 4 without its tower: one shared expert, dense layers between, and chunks of attention but in each 4th."""
    hidden, layers = model.hidden_size, model.layers
    name, moe = "model.layers.#.feed_forward", each(model, model.odd_number("interleave_moe_layer_step", 1))
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.router", experts, hidden, moe),
        *gated_experts(f"{name}.experts", experts, hidden, width, moe, renormalised=True),
        *shared_experts(f"{name}.shared_expert", hidden, width, moe, under_sequence_parallel="whole"),
        *dense_beside(model, moe, "intermediate_size_mlp", name=name),
    )
    chunked = llama4_chunked_layers(model)
    full = tuple(layer for layer in layers if layer not in frozenset(chunked))
    kept = [cache(model, full)] if full else []
    if chunked:
        kept.append(cache(model, chunked, model.odd_number("attention_chunk_size"), kind="chunked"))
    return sparse(model, grouped_query(model), rows, cache_rows=tuple(kept), ends_on_every_stage=False)


def dbrx(model: Model) -> Rows:
    """DBRX, whose numbers of experts stand in a part of the config of their own."""
    hidden, layers, name = model.hidden_size, model.layers, "transformer.blocks.#"
    experts = model.part_number("ffn_config", "moe_num_experts")
    width = model.part_number("ffn_config", "ffn_hidden_size")
    attention = grouped_query(model, name=f"{name}.norm_attn_norm.attn", merged="Wqkv", output="out_proj")
    rows = (
        router(f"{name}.ffn.router.layer", experts, hidden, layers),
        *gated_experts(f"{name}.ffn.experts", experts, hidden, width, layers, renormalised=True, balanceable=False),
    )
    return sparse(model, attention, rows)


def ernie4_5_moe(model: Model) -> Rows:
    """ERNIE 4.5: GLM-4.5's router and shared experts; which layers are sparse is a range with a step."""
    hidden, moe = model.hidden_size, ernie_sparse_layers(model)
    experts, width = model.number("num_experts"), model.number("moe_intermediate_size")
    bias = model.flag("use_bias")
    shared = width * model.odd_number("moe_num_shared_experts", 0)
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, element_type="float32"),
        correction_bias(f"{MLP}.gate", experts, moe),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, moe, one_a_rank=True),
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe, bias=bias),
        *dense_beside(model, moe, bias=bias),
    )
    decoder = sparse(model, grouped_query(model, qkv_bias=bias), rows, ends_on_every_stage=False)
    return decoder._replace(ties_on_one_stage=model.tied_embeddings)


FAMILIES: Mapping[str, Family] = {
    "DbrxForCausalLM": dbrx,
    "Ernie4_5_MoeForCausalLM": ernie4_5_moe,
    "Glm4MoeForCausalLM": glm4_moe,
    "GptOssForCausalLM": gpt_oss,
    "Llama4ForCausalLM": llama4,
    "MiniMaxM2ForCausalLM": minimax_m2,
    "MixtralForCausalLM": mixtral,
    "OlmoeForCausalLM": olmoe,
    "PhiMoEForCausalLM": phimoe,
    "Qwen2MoeForCausalLM": qwen2_moe,
    "Qwen3MoeForCausalLM": qwen3_moe,
}
"""Architecture class -> family."""
