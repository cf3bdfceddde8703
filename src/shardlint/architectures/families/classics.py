"""Dense decoders of the first open models, and later ones whose MLP or norms differ from Llama's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache, caches, grouped_query
from shardlint.architectures.blocks.ends import EACH_STAGE, ends
from shardlint.architectures.blocks.mlp import gated, plain
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.families.decoders import MLP, Family, dense
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.patterns import listed_as_sliding
from shardlint.architectures.rows import Extent, Row, Rows

LAYERS = "model.layers.#"
OPT_FIRST_POSITIONS = 2
"""Positions of OPT's table before the first that counts."""


def opt(model: Model) -> Rows:
    """OPT: learnt positions, biases everywhere, and always tied."""
    hidden, layers, name = model.hidden_size, model.layers, "model.decoder.layers.#"
    if model.odd_number("word_embed_proj_dim", hidden) != hidden or not model.flag("do_layer_norm_before", True):
        raise Missing(f"{model.geometry.model_id} projects its embeddings, which is not described")
    bias, inner = model.flag("enable_bias", default=True), model.odd_number("ffn_dim")
    positions = Extent(model.number("max_position_embeddings") + OPT_FIRST_POSITIONS)
    renamed = {"model.embed_tokens": "model.decoder.embed_tokens"}
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias, name=f"{name}.self_attn", output="out_proj"),
        *plain(name, ("fc1", "fc2"), hidden, inner, layers, bias=bias),
        *(norm(f"{name}.{key}", hidden, layers, bias=True) for key in ("self_attn_layer_norm", "final_layer_norm")),
        Row("model.decoder.embed_positions", (positions,), Extent(hidden), stage="each", quantisable=False),
        *_renamed(ends(model, stages=EACH_STAGE, norm_name="model.decoder.final_layer_norm", norm_bias=True), renamed),
    )
    return Rows(weights, caches(model, ()), len(layers))


def gpt_neox(model: Model) -> Rows:
    """GPT-NeoX and Pythia: LayerNorms, biases everywhere but in the output head."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("attention_bias", default=True)
    inner, heads = model.number("intermediate_size"), Heads(model.heads, model.heads, hidden // model.heads)
    name = f"{LAYERS}.attention"
    weights = (
        *grouped_query(
            model,
            qkv_bias=bias,
            output_bias=bias,
            heads=heads,
            name=name,
            merged="query_key_value",
            output="dense",
        ),
        *plain(f"{LAYERS}.mlp", ("dense_h_to_4h", "dense_4h_to_h"), hidden, inner, layers),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers, bias=True),
        *_renamed(
            ends(model, norm_name="model.final_layer_norm", norm_bias=True), {"model.embed_tokens": "model.embed_in"}
        ),
    )
    return Rows(weights, (cache(model, layers, heads=heads),), len(layers))


def gptj(model: Model) -> Rows:
    """GPT-J: one LayerNorm a layer, no bias of the attention, one of the output head."""
    hidden, layers, name = model.hidden_size, model.layers, "transformer.h.#"
    renamed = {"model.embed_tokens": "transformer.wte"}
    last = ends(model, stages=EACH_STAGE, norm_name="transformer.ln_f", norm_bias=True, head_bias=True)
    weights = (
        *grouped_query(model, name=f"{name}.attn", output="out_proj"),
        *plain(f"{name}.mlp", ("fc_in", "fc_out"), hidden, model.odd_number("n_inner", 4 * hidden), layers),
        norm(f"{name}.ln_1", hidden, layers, bias=True),
        *_renamed(last, renamed),
    )
    return Rows(weights, caches(model, ()), len(layers))


def gpt_bigcode(model: Model) -> Rows:
    """StarCoder and SantaCoder: GPT-2 with one KV head, and an MLP that no rank cuts."""
    hidden, layers, name = model.hidden_size, model.layers, "model.h.#"
    heads = Heads(model.heads, 1 if model.flag("multi_query", True) else model.heads, hidden // model.heads)
    inner, positions = model.odd_number("n_inner", 4 * hidden), Extent(model.number("max_position_embeddings"))
    weights = (
        *grouped_query(
            model,
            qkv_bias=True,
            output_bias=True,
            heads=heads,
            name=f"{name}.attn",
            merged="c_attn",
            output="c_proj",
        ),
        Row(f"{name}.mlp.c_fc", (Extent(inner),), Extent(hidden), True, layers),
        Row(f"{name}.mlp.c_proj", (Extent(hidden),), Extent(inner), True, layers),
        *(norm(f"{name}.{key}", hidden, layers, bias=True) for key in ("ln_1", "ln_2")),
        Row("model.wpe", (positions,), Extent(hidden), stage="each", quantisable=False),
        *_renamed(ends(model, norm_name="model.ln_f", norm_bias=True), {"model.embed_tokens": "model.wte"}),
    )
    return Rows(weights, (cache(model, layers, heads=heads),), len(layers))


def olmo(model: Model) -> Rows:
    """OLMo 1: norms without weights."""
    bias = model.flag("attention_bias")
    rows = dense(model, grouped_query(model, qkv_bias=bias, output_bias=bias), norms=())
    return rows._replace(weights=tuple(row for row in rows.weights if row.name != "model.norm"))


def arcee(model: Model) -> Rows:
    """Arcee (AFM): Llama with an MLP that has no gate."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("attention_bias")
    inner, mlp_bias = model.number("intermediate_size"), model.flag("mlp_bias")
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias),
        *plain(MLP, ("up_proj", "down_proj"), hidden, inner, layers, bias=mlp_bias),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers),
        *ends(model),
    )
    return Rows(weights, caches(model, ()), len(layers))


def jais2(model: Model) -> Rows:
    """Jais 2: LayerNorms, an MLP without a gate, and biases by keys."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("attention_bias", default=True)
    inner, mlp_bias = model.number("intermediate_size"), model.flag("mlp_bias", default=True)
    weights = (
        *grouped_query(model, qkv_bias=bias, output_bias=bias),
        *plain(MLP, ("up_proj", "down_proj"), hidden, inner, layers, bias=mlp_bias),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers, bias=True),
        *ends(model, norm_bias=True),
    )
    return Rows(weights, caches(model, ()), len(layers))


def glm(model: Model) -> Rows:
    """GLM-4 as Transformers has it (glm-4-9b-chat-hf): Llama, whose Q, K and V have a bias unless a key denies it."""
    return dense(model, grouped_query(model, qkv_bias=model.flag("attention_bias", default=True)))


def hyperclovax(model: Model) -> Rows:
    """HyperCLOVA X: Llama, with a norm after each block too where a key asks for it."""
    bias = model.flag("attention_bias") or model.flag("bias")
    norms = (*BEFORE_THE_BLOCKS, *(("post_norm1", "post_norm2") if model.flag("use_post_norm") else ()))
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    return dense(model, attention, mlp_bias=model.flag("mlp_bias"), norms=norms)


def vaultgemma(model: Model) -> Rows:
    """VaultGemma: Gemma 2 without the norms after its blocks."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    norms, sliding = ("input_layernorm", "pre_feedforward_layernorm"), listed_as_sliding(model, model.layers[::2])
    return dense(model, attention, norms=norms, sliding=sliding)


def minicpm(model: Model) -> Rows:
    """MiniCPM: Llama, whose scales of embeddings and residuals are no weights."""
    if model.number_or_none("num_experts"):
        raise Missing("a MiniCPM model with experts is not described")
    bias = model.flag("attention_bias") or model.flag("bias")
    return dense(model, grouped_query(model, qkv_bias=bias, output_bias=bias), mlp_bias=model.flag("mlp_bias"))


def internlm2(model: Model) -> Rows:
    """InternLM 2: Llama under names of its own."""
    hidden, layers, bias = model.hidden_size, model.layers, model.flag("bias")
    attention, feed_forward = f"{LAYERS}.attention", f"{LAYERS}.feed_forward"
    into, out = gated(feed_forward, hidden, model.number("intermediate_size"), layers)
    names = {"model.embed_tokens": "model.tok_embeddings", "lm_head": "output"}
    weights = (
        *(
            row._replace(fuses=())
            for row in grouped_query(model, qkv_bias=bias, output_bias=bias, name=attention, merged="wqkv", output="wo")
        ),
        into._replace(fuses=("w1", "w3")),
        out._replace(name=f"{feed_forward}.w2"),
        *layer_norms(("attention_norm", "ffn_norm"), hidden, layers),
        *_renamed(ends(model, stages=EACH_STAGE), names),
    )
    return Rows(weights, caches(model, ()), len(layers))


def orion(model: Model) -> Rows:
    """Orion: Llama with LayerNorms that have a bias, and its ends on every stage."""
    return dense(model, grouped_query(model), norm_bias=True, ends_on_every_stage=True)


def telechat2(model: Model) -> Rows:
    """TeleChat 2: Llama whose output projection and down projection have a bias."""
    rows = dense(model, grouped_query(model, output_bias=True))
    biased = (row._replace(bias=True) if row.name.endswith("down_proj") else row for row in rows.weights)
    return rows._replace(weights=tuple(biased))


def minicpm3(model: Model) -> Rows:
    """MiniCPM 3: latents for queries and for keys and values, of which it keeps every head in full."""
    hidden, layers, name = model.hidden_size, model.layers, f"{LAYERS}.self_attn"
    rank, rope = model.odd_number("kv_lora_rank"), model.odd_number("qk_rope_head_dim")
    low, nope = model.odd_number("q_lora_rank"), model.odd_number("qk_nope_head_dim")
    value = model.odd_number("v_head_dim", hidden // model.heads)
    width, inner = nope + rope, model.number("intermediate_size")
    weights = (
        Row(f"{name}.q_a_proj", (Extent(low),), Extent(hidden), layers=layers),
        norm(f"{name}.q_a_layernorm", low, layers),
        Row(f"{name}.q_b_proj", (Extent(model.heads, "query_head", width),), Extent(low), layers=layers),
        Row(f"{name}.kv_a_proj_with_mqa", (Extent(rank + rope),), Extent(hidden), layers=layers),
        norm(f"{name}.kv_a_layernorm", rank, layers),
        Row(
            f"{name}.kv_b_proj",
            (Extent(model.heads, "query_head", nope + value),),
            Extent(rank),
            layers=layers,
            attention="grouped",
        ),
        Row(f"{name}.o_proj", (Extent(hidden),), Extent(model.heads * value, "row"), layers=layers),
        *gated(MLP, hidden, inner, layers),
        *layer_norms(BEFORE_THE_BLOCKS, hidden, layers),
        *ends(model, on_every_stage=True),
    )
    heads = Heads(model.heads, model.heads, width)
    return Rows(weights, (cache(model, layers, heads=heads),), len(layers))


def _renamed(rows: Sequence[Row], names: Mapping[str, str]) -> tuple[Row, ...]:
    return tuple(row._replace(name=names.get(row.name, row.name)) for row in rows)


FAMILIES: Mapping[str, Family] = {
    "ArceeForCausalLM": arcee,
    "GPTBigCodeForCausalLM": gpt_bigcode,
    "GPTJForCausalLM": gptj,
    "GPTNeoXForCausalLM": gpt_neox,
    "GlmForCausalLM": glm,
    "HyperCLOVAXForCausalLM": hyperclovax,
    "InternLM2ForCausalLM": internlm2,
    "Jais2ForCausalLM": jais2,
    "MiniCPM3ForCausalLM": minicpm3,
    "MiniCPMForCausalLM": minicpm,
    "OPTForCausalLM": opt,
    "OlmoForCausalLM": olmo,
    "OrionForCausalLM": orion,
    "TeleChat2ForCausalLM": telechat2,
    "VaultGemmaForCausalLM": vaultgemma,
}
"""Architecture class -> family."""
