"""Dense families that differ from Llama in their norms, their biases, their MLP or the names of their modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import HeadNorms, cache, caches, grouped_query, sinks
from shardlint.architectures.blocks.ends import EACH_STAGE, ends
from shardlint.architectures.blocks.mlp import gated, plain
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.decoders import dense as dense_decoder
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import all_but_each, every_layer_slides, listed_as_sliding
from shardlint.architectures.rows import Extent, Row, Rows

BLOCKS = "transformer.h.#"


def cohere(model: Model) -> Rows:
    """Command-R and Command-A: one norm a layer, and never an output head of its own."""
    hidden, layers = model.hidden_size, model.layers
    head_norms: HeadNorms = "cut_with_the_heads" if model.flag("use_qk_norm") else "none"
    weights = (
        *grouped_query(model, head_norms=head_norms),
        *gated(MLP, hidden, model.number("intermediate_size"), layers),
        *layer_norms(("input_layernorm",), hidden, layers),
        *ends(model, on_every_stage=True, tied=True),
    )
    return Rows(weights, caches(model, ()), len(layers))


def cohere2(model: Model) -> Rows:
    """Command-R7B and Command-A: Cohere's rows; all but each fourth layer slide, over one token more than told."""
    rows, window = cohere(model), model.number("sliding_window") + 1
    sliding = listed_as_sliding(model, all_but_each(model, model.odd_number("sliding_window_pattern", 4)))
    full = tuple(layer for layer in model.layers if layer not in frozenset(sliding))
    kept = (*((cache(model, full),) if full else ()), *((cache(model, sliding, window),) if sliding else ()))
    return rows._replace(caches=kept)


def nemotron(model: Model) -> Rows:
    """Nemotron and Minitron: LayerNorms with bias, and an MLP without a gate."""
    hidden, layers = model.hidden_size, model.layers
    bias = model.flag("attention_bias") or model.flag("bias")
    inner, mlp_bias = model.number("intermediate_size"), model.flag("mlp_bias")
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias),
        *plain(MLP, ("up_proj", "down_proj"), hidden, inner, layers, bias=mlp_bias),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers, bias=True),
        *ends(model, norm_bias=True),
    )
    return Rows(weights, caches(model, ()), len(layers))


def exaone(model: Model) -> Rows:
    """EXAONE 3: Llama's rows under GPT-2's names."""
    hidden, layers = model.hidden_size, model.layers
    bias = model.flag("attention_bias") or model.flag("bias")
    into, out = gated(f"{BLOCKS}.mlp", hidden, model.number("intermediate_size"), layers, bias=model.flag("mlp_bias"))
    name = f"{BLOCKS}.attn.attention"
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias, name=name, output="out_proj"),
        into._replace(fuses=("c_fc_0", "c_fc_1")),
        out._replace(name=f"{BLOCKS}.mlp.c_proj"),
        *(norm(f"{BLOCKS}.{key}", hidden, layers) for key in ("ln_1", "ln_2")),
        *_named(ends(model, norm_name="transformer.ln_f"), {"model.embed_tokens": "transformer.wte"}),
    )
    return Rows(weights, caches(model, ()), len(layers))


def ernie4_5(model: Model) -> Rows:
    """ERNIE 4.5 without experts: Llama, whose output projection never has a bias."""
    bias = model.flag("attention_bias") or model.flag("bias")
    sliding = every_layer_slides(model)
    return dense_decoder(model, grouped_query(model, qkv_bias=bias), mlp_bias=model.flag("mlp_bias"), sliding=sliding)


def seed_oss(model: Model) -> Rows:
    """Seed-OSS: Llama with a bias of Q, K and V, and one of the output by a key of its own."""
    bias = model.flag("attention_out_bias")
    attention = grouped_query(model, qkv_bias=model.flag("attention_bias", default=True), output_bias=bias)
    return dense_decoder(model, attention, mlp_bias=model.flag("mlp_bias"))


def hunyuan(model: Model) -> Rows:
    """Hunyuan without experts: Llama with norms on the heads."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return dense_decoder(model, attention)


def starcoder2(model: Model) -> Rows:
    """StarCoder 2: LayerNorms with bias, an MLP without a gate, and biases by one key."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("use_bias", default=True)
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias),
        *plain(MLP, ("c_fc", "c_proj"), hidden, model.number("intermediate_size"), layers, bias=bias),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers, bias=True),
        *ends(model, norm_bias=True),
    )
    return Rows(weights, caches(model, every_layer_slides(model)), len(layers))


def granite(model: Model) -> Rows:
    """Granite: Llama; with `layer_types` some layers slide, and each query head has a sink."""
    bias = model.flag("attention_bias") or model.flag("bias")
    attention = (*grouped_query(model, qkv_bias=bias, output_bias=bias), *granite_sinks(model))
    sliding = listed_as_sliding(model, ())
    return dense_decoder(model, attention, mlp_bias=model.flag("mlp_bias"), sliding=sliding)


def granite_sinks(model: Model) -> tuple[Row, ...]:
    """What a Granite model with a kind for each layer has beside its heads, unless a key denies it."""
    has_sinks = model.flag("attention_sinks", default=model.odd("layer_types") is not None)
    return sinks(model.heads, model.layers) if has_sinks else ()


def apertus(model: Model) -> Rows:
    """Apertus: norms on the heads, and an MLP without a gate whose activation has two numbers in each layer."""
    hidden, layers = model.hidden_size, model.layers
    bias = model.flag("attention_bias") or model.flag("bias")
    activation = (Extent(1), Extent(1))
    weights = (
        *grouped_query(model, qkv_bias=model.flag("qkv_bias", bias), output_bias=bias, head_norms="per_head"),
        *plain(
            MLP,
            ("up_proj", "down_proj"),
            hidden,
            model.number("intermediate_size"),
            layers,
            bias=model.flag("mlp_bias"),
        ),
        Row(f"{MLP}.act_fn.alpha", activation, layers=layers, quantisable=False),
        *layer_norms(("attention_layernorm", "feedforward_layernorm"), hidden, layers),
        *ends(model),
    )
    return Rows(weights, caches(model, listed_as_sliding(model, ())), len(layers))


def bloom(model: Model) -> Rows:
    """BLOOM: biases everywhere, a norm behind the embedding, and the ends on every stage."""
    hidden, layers, names = model.hidden_size, model.layers, {"model.embed_tokens": "transformer.word_embeddings"}
    weights = (
        *_old_attention(model, bias=True),
        *_old_mlp(hidden, 4 * hidden, layers, bias=True),
        *(norm(f"{BLOCKS}.{key}", hidden, layers, bias=True) for key in BEFORE_THE_BLOCKS),
        Row("transformer.word_embeddings_layernorm", (Extent(hidden),), bias=True, stage="each", quantisable=False),
        *_named(ends(model, stages=EACH_STAGE, norm_name="transformer.ln_f", norm_bias=True), names),
    )
    return Rows(weights, caches(model, ()), len(layers))


def falcon(model: Model) -> Rows:
    """Falcon: norms by its generation, biases by a key, and the ends on every stage."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("bias")
    new, parallel = model.flag("new_decoder_architecture"), model.flag("parallel_attn", default=True)
    of_two = model.odd("num_ln_in_parallel_attn", 2 if new else 1) == 2
    norms = (("ln_attn", "ln_mlp") if of_two else ("input_layernorm",)) if parallel else BEFORE_THE_BLOCKS
    names = {"model.embed_tokens": "transformer.word_embeddings"}
    weights = (
        *_old_attention(model, bias=bias),
        *_old_mlp(hidden, 4 * hidden, layers, bias=bias),
        *(norm(f"{BLOCKS}.{key}", hidden, layers, bias=True) for key in norms),
        *_named(ends(model, stages=EACH_STAGE, norm_name="transformer.ln_f", norm_bias=True), names),
    )
    return Rows(weights, caches(model, ()), len(layers))


def _old_attention(model: Model, *, bias: bool) -> tuple[Row, ...]:
    name, merged = f"{BLOCKS}.self_attention", "query_key_value"
    rows = grouped_query(model, qkv_bias=bias, output_bias=bias, name=name, merged=merged, output="dense")
    return tuple(row._replace(fuses=()) for row in rows)


def _old_mlp(hidden: int, width: int, layers: Sequence[int], *, bias: bool) -> tuple[Row, ...]:
    return plain(f"{BLOCKS}.mlp", ("dense_h_to_4h", "dense_4h_to_h"), hidden, width, layers, bias=bias)


def _named(rows: Sequence[Row], names: Mapping[str, str]) -> tuple[Row, ...]:
    return tuple(row._replace(name=names.get(row.name, row.name)) for row in rows)


FAMILIES: Mapping[str, Family] = {
    "ApertusForCausalLM": apertus,
    "BloomForCausalLM": bloom,
    "Cohere2ForCausalLM": cohere2,
    "CohereForCausalLM": cohere,
    "Ernie4_5ForCausalLM": ernie4_5,
    "ExaoneForCausalLM": exaone,
    "FalconForCausalLM": falcon,
    "GraniteForCausalLM": granite,
    "GraniteSWAForCausalLM": granite,
    "HunYuanDenseV1ForCausalLM": hunyuan,
    "NemotronForCausalLM": nemotron,
    "SeedOssForCausalLM": seed_oss,
    "Starcoder2ForCausalLM": starcoder2,
}
"""Architecture class -> family."""
