"""Families from before everybody took Llama's blocks, and heads that judge instead of speaking."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import Heads, cache, caches, grouped_query
from shardlint.architectures.blocks.ends import EACH_STAGE, ends
from shardlint.architectures.blocks.mlp import gated, plain
from shardlint.architectures.blocks.norms import BEFORE_THE_BLOCKS, norm
from shardlint.architectures.families import dense
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.model import Model
from shardlint.architectures.rows import Extent, Row, Rows

LAYERS = "model.layers.#"


def chatglm(model: Model) -> Rows:
    """ChatGLM 2 and 3 and the first GLM-4: everything on every stage, under names of its own."""
    name, hidden, layers, bias = (
        "transformer.encoder.layers.#",
        model.hidden_size,
        model.layers,
        model.flag("add_bias_linear"),
    )
    norm_bias, heads = (
        not model.flag("rmsnorm", default=True),
        Heads(model.heads, model.kv_heads, hidden // model.heads),
    )
    attention = grouped_query(
        model,
        qkv_bias=bias or model.flag("add_qkv_bias"),
        output_bias=bias,
        heads=heads,
        name=f"{name}.self_attention",
        merged="query_key_value",
        output="dense",
    )
    into, out = gated(f"{name}.mlp", hidden, model.odd_number("ffn_hidden_size"), layers, bias=bias)
    last = ends(model, stages=EACH_STAGE, norm_name="transformer.encoder.final_layernorm", norm_bias=norm_bias)
    if not model.flag("post_layer_norm", default=True):
        last = tuple(row for row in last if not row.name.endswith("final_layernorm"))
    names = {"model.embed_tokens": "transformer.embedding", "lm_head": "transformer.output_layer"}
    weights = (
        *attention,
        into._replace(name=f"{name}.mlp.dense_h_to_4h"),
        out._replace(name=f"{name}.mlp.dense_4h_to_h"),
        *(norm(f"{name}.{key}", hidden, layers, bias=norm_bias) for key in BEFORE_THE_BLOCKS),
        *(row._replace(name=names.get(row.name, row.name)) for row in last),
    )
    return Rows(weights, (cache(model, layers, heads=heads),), len(layers))


def phi(model: Model) -> Rows:
    """Phi-1.5 and Phi-2: one LayerNorm a layer, biases everywhere but in the output head."""
    hidden, layers = model.hidden_size, model.layers
    weights = (
        *grouped_query(model, qkv_bias=True, output_bias=True, output="dense"),
        *plain(f"{LAYERS}.mlp", ("fc1", "fc2"), hidden, model.number("intermediate_size"), layers),
        norm(f"{LAYERS}.input_layernorm", hidden, layers, bias=True),
        *ends(model, norm_name="model.final_layernorm", norm_bias=True),
    )
    return Rows(weights, caches(model, ()), len(layers))


def gpt2(model: Model) -> Rows:
    """GPT-2: learnt positions, and everything on every stage."""
    name, hidden, layers = "transformer.h.#", model.hidden_size, model.layers
    inner = model.odd_number("n_inner", 4 * hidden)
    names = {"model.embed_tokens": "transformer.wte"}
    last = ends(model, stages=EACH_STAGE, norm_name="transformer.ln_f", norm_bias=True)
    positions = Extent(model.number("max_position_embeddings"))
    weights = (
        *grouped_query(model, qkv_bias=True, output_bias=True, name=f"{name}.attn", merged="c_attn", output="c_proj"),
        *plain(f"{name}.mlp", ("c_fc", "c_proj"), hidden, inner, layers),
        *(norm(f"{name}.{key}", hidden, layers, bias=True) for key in ("ln_1", "ln_2")),
        Row("transformer.wpe", (positions,), Extent(hidden), stage="each", quantisable=False),
        *(row._replace(name=names.get(row.name, row.name)) for row in last),
    )
    return Rows(weights, caches(model, ()), len(layers))


def judging(family: Family) -> Family:
    """A family whose output head gives way to one score for each label, in 32 bits and on every stage."""

    def judge(model: Model) -> Rows:
        """A language model as a reranker: one score for each label, in 32 bits, in place of the output head."""
        rows = family(model)
        score = Row(
            "score",
            (Extent(labels(model)),),
            Extent(model.hidden_size),
            stage="each",
            element_type="float32",
            quantisable=False,
        )
        return rows._replace(weights=(*(row for row in rows.weights if row.name != "lm_head"), score))

    return judge


def labels(model: Model) -> int:
    """The labels that a config names, two where it names none."""
    listed = model.odd("id2label")
    return model.odd_number("num_labels", len(listed) if isinstance(listed, Mapping) and listed else 2)


FAMILIES: Mapping[str, Family] = {
    "ChatGLMForConditionalGeneration": chatglm,
    "ChatGLMModel": chatglm,
    "GPT2LMHeadModel": gpt2,
    "LlamaForSequenceClassification": judging(dense.llama),
    "PhiForCausalLM": phi,
    "Qwen2ForSequenceClassification": judging(dense.qwen2),
    "Qwen3ForSequenceClassification": judging(dense.qwen3),
}
"""Architecture class -> family."""
