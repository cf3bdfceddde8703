"""The table of families: from the architecture class that an engine builds to the rows of the model.

A family is one function of the model's numbers.  Where a class differs from its relatives only in which blocks it
takes and which stage holds its ends, that is all its function says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shardlint.architectures.blocks.attention import caches, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import (
    AFTER_THE_BLOCKS,
    AROUND_THE_BLOCKS,
    BEFORE_THE_BLOCKS,
    GLM4_NORMS,
    layer_norms,
)
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import (
    all_but_each,
    every_layer_slides,
    listed_as_sliding,
    qwen_sliding_layers,
    qwen_sparse_layers,
    three_of_four_slide,
)
from shardlint.architectures.quantisation import quantisation_of
from shardlint.architectures.rows import Row, Rows
from shardlint.facts import Geometry
from shardlint.findings import Unknown

Family = Callable[[Model], Rows]

MLP = "model.layers.#.mlp"


def rows_of(geometry: Geometry | Unknown, families: Mapping[str, Family] | None = None) -> Rows | Unknown:
    """All rows of a model; Unknown, with what would settle it, where its family or one of its numbers is not known.

    Of a quantised checkpoint the sizes are given and `Rows.bytes_unknown` is set.  `families` is the table to look in,
    this module's where none is given.
    """
    if isinstance(geometry, Unknown):
        return geometry
    if not geometry.text:
        return Unknown(
            f"of {geometry.model_id} only the main numbers are known",
            settle_by="give the model's config.json with --models",
        )
    family = (FAMILIES if families is None else families).get(geometry.architecture)
    if family is None:
        named = geometry.architecture or "a model without architecture"
        return Unknown(f"the weights of {named} are not described", settle_by="a description of its family")
    try:
        rows = family(Model(geometry))
    except Missing as missing:
        return missing.unknown
    return rows._replace(bytes_unknown=_bytes_unknown(geometry))


def _bytes_unknown(geometry: Geometry) -> Unknown | None:
    """Why an element's bytes are not known: the checkpoint is quantised."""
    method = quantisation_of(geometry)
    if method is None or isinstance(method, Unknown):
        return method
    return Unknown(f"the checkpoint is quantised ({method}), and the bytes of its rows are not described")


def llama(model: Model) -> Rows:
    """Llama and the classes that are it."""
    bias = model.flag("attention_bias") or model.flag("bias")
    attention = grouped_query(model, qkv_bias=model.flag("qkv_bias", bias), output_bias=bias)
    return dense(model, attention, mlp_bias=model.flag("mlp_bias"), sliding=every_layer_slides(model))


def qwen2(model: Model) -> Rows:
    """Qwen2: Q, K and V always have a bias, which no key says."""
    return dense(model, grouped_query(model, qkv_bias=True), sliding=qwen_sliding_layers(model))


def qwen3(model: Model) -> Rows:
    """Qwen3: norms on the heads, biases by a key."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return dense(model, attention, sliding=qwen_sliding_layers(model))


def phi3(model: Model) -> Rows:
    """Phi-3 and Phi-4, whose checkpoints hold the merged weights."""
    return dense(model, grouped_query(model), sliding=every_layer_slides(model))


def smollm3(model: Model) -> Rows:
    """SmolLM3: Llama's rows; which layers have no positions changes no weight."""
    bias = model.flag("attention_bias")
    sliding = qwen_sliding_layers(model)
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    return dense(model, attention, mlp_bias=model.flag("mlp_bias"), sliding=sliding)


def olmo2(model: Model) -> Rows:
    """OLMo 2 and 3: norms after the blocks, head norms over the whole width that no rank cuts."""
    attention = grouped_query(model, head_norms="whole_width")
    return dense(model, attention, norms=AFTER_THE_BLOCKS, sliding=three_of_four_slide(model))


def exaone4(model: Model) -> Rows:
    """EXAONE 4: norms after the blocks and on the heads."""
    attention = grouped_query(model, head_norms="per_head")
    return dense(model, attention, norms=AFTER_THE_BLOCKS, sliding=three_of_four_slide(model))


def gemma(model: Model) -> Rows:
    """Gemma: tied, and its ends stand on every stage."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    return dense(model, attention, ends_on_every_stage=True)


def gemma2(model: Model) -> Rows:
    """Gemma 2: four norms, and every other layer slides, the first one too."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    sliding = listed_as_sliding(model, model.layers[::2])
    return dense(model, attention, norms=AROUND_THE_BLOCKS, sliding=sliding, ends_on_every_stage=True)


def gemma3(model: Model) -> Rows:
    """Gemma 3 without its tower: Gemma 2 with head norms, and all but each sixth layer slide."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    sliding = listed_as_sliding(model, all_but_each(model, model.odd_number("sliding_window_pattern", 6)))
    return dense(model, attention, norms=AROUND_THE_BLOCKS, sliding=sliding, ends_on_every_stage=True)


def glm4(model: Model) -> Rows:
    """GLM-4 0414: four norms; Q, K and V have a bias unless a key denies it."""
    attention = grouped_query(model, qkv_bias=model.flag("attention_bias", default=True))
    return dense(model, attention, norms=GLM4_NORMS)


def stablelm(model: Model) -> Rows:
    """StableLM: LayerNorms with bias."""
    attention = grouped_query(model, qkv_bias=model.flag("use_qkv_bias"))
    return dense(model, attention, norm_bias=True, ends_on_every_stage=True)


def mixtral(model: Model) -> Rows:
    """Mixtral: `intermediate_size` is the width of an expert, and every layer has experts."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers),
    )
    return sparse(model, grouped_query(model), rows, sliding=every_layer_slides(model))


def phimoe(model: Model) -> Rows:
    """Phi-3.5-MoE: Mixtral's experts between LayerNorms, with biases by keys."""
    layers, hidden, name = model.layers, model.hidden_size, "model.layers.#.block_sparse_moe"
    bias = model.flag("attention_bias")
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{name}.gate", experts, hidden, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers),
    )
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    sliding = every_layer_slides(model)
    return sparse(model, attention, rows, sliding=sliding, norm_bias=True, head_bias=model.flag("lm_head_bias"))


def olmoe(model: Model) -> Rows:
    """OLMoE: `intermediate_size` is the width of an expert; head norms over the whole width."""
    layers, hidden = model.layers, model.hidden_size
    experts, width = model.number("num_experts"), model.number("intermediate_size")
    rows = (
        router(f"{MLP}.gate", experts, hidden, layers),
        *gated_experts(f"{MLP}.experts", experts, hidden, width, layers),
    )
    return sparse(model, grouped_query(model, head_norms="whole_width"), rows)


def qwen2_moe(model: Model) -> Rows:
    """Qwen1.5-MoE and Qwen2-MoE: a shared expert with its own gate beside the others."""
    moe, hidden = qwen_sparse_layers(model), model.hidden_size
    rows = (
        *_qwen_experts(model, moe, router_quantisable=False),
        *gated(f"{MLP}.shared_expert", hidden, model.odd_number("shared_expert_intermediate_size"), moe),
        router(f"{MLP}.shared_expert_gate", 1, hidden, moe),
    )
    attention = grouped_query(model, qkv_bias=model.flag("qkv_bias", default=True))
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def qwen3_moe(model: Model) -> Rows:
    """Qwen3-MoE: head norms; its router is an ordinary linear layer for quantisation."""
    rows = _qwen_experts(model, qwen_sparse_layers(model), router_quantisable=True)
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return sparse(model, attention, rows, sliding=qwen_sliding_layers(model))


def _qwen_experts(model: Model, moe: Sequence[int], *, router_quantisable: bool) -> tuple[Row, ...]:
    """Router and experts of the sparse layers, and the dense MLP of the others."""
    hidden, experts = model.hidden_size, model.number("num_experts")
    rows = (
        router(f"{MLP}.gate", experts, hidden, moe, quantisable=router_quantisable),
        *gated_experts(f"{MLP}.experts", experts, hidden, model.number("moe_intermediate_size"), moe),
    )
    dense_layers = tuple(layer for layer in model.layers if layer not in frozenset(moe))
    if not dense_layers:
        return rows
    return (*rows, *gated(MLP, hidden, model.number("intermediate_size"), dense_layers))


def dense(
    model: Model,
    attention: Sequence[Row],
    *,
    mlp_bias: bool = False,
    norms: Sequence[str] = BEFORE_THE_BLOCKS,
    norm_bias: bool = False,
    sliding: Sequence[int] = (),
    ends_on_every_stage: bool = False,
) -> Rows:
    """A decoder whose every layer has attention and one gated MLP."""
    mlp = gated(MLP, model.hidden_size, model.number("intermediate_size"), model.layers, bias=mlp_bias)
    layer = (*attention, *mlp, *layer_norms(norms, model.hidden_size, model.layers, bias=norm_bias))
    last = ends(model, on_every_stage=ends_on_every_stage, norm_bias=norm_bias)
    return Rows((*layer, *last), caches(model, sliding), len(model.layers))


def sparse(
    model: Model,
    attention: Sequence[Row],
    feed_forward: Sequence[Row],
    *,
    sliding: Sequence[int] = (),
    norm_bias: bool = False,
    head_bias: bool = False,
) -> Rows:
    """A decoder with experts. All classes of this kind so far build their ends on every stage."""
    norms = layer_norms(BEFORE_THE_BLOCKS, model.hidden_size, model.layers, bias=norm_bias)
    last = ends(model, on_every_stage=True, norm_bias=norm_bias, head_bias=head_bias)
    return Rows((*attention, *feed_forward, *norms, *last), caches(model, sliding), len(model.layers))


FAMILIES: Mapping[str, Family] = {
    "AquilaForCausalLM": llama,
    "AquilaModel": llama,
    "Exaone4ForCausalLM": exaone4,
    "Gemma2ForCausalLM": gemma2,
    "Gemma3ForCausalLM": gemma3,
    "GemmaForCausalLM": gemma,
    "Glm4ForCausalLM": glm4,
    "InternLM3ForCausalLM": llama,
    "InternLMForCausalLM": llama,
    "LLaMAForCausalLM": llama,
    "LlamaForCausalLM": llama,
    "Ministral3ForCausalLM": llama,
    "MistralForCausalLM": llama,
    "MistralModel": llama,
    "MixtralForCausalLM": mixtral,
    "Olmo2ForCausalLM": olmo2,
    "Olmo3ForCausalLM": olmo2,
    "OlmoeForCausalLM": olmoe,
    "Phi3ForCausalLM": phi3,
    "PhiMoEForCausalLM": phimoe,
    "Qwen2ForCausalLM": qwen2,
    "Qwen2MoeForCausalLM": qwen2_moe,
    "Qwen3ForCausalLM": qwen3,
    "Qwen3MoeForCausalLM": qwen3_moe,
    "SmolLM3ForCausalLM": smollm3,
    "StableLMEpochForCausalLM": stablelm,
    "StableLmForCausalLM": stablelm,
    "XverseForCausalLM": llama,
}
"""Architecture class -> family. What is not here is unknown, never guessed."""
