"""Encoders with rotary positions, and language models that embed, rank or judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, grouped_query
from shardlint.architectures.blocks.mlp import gated, plain
from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.families import classics, dense
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.encoders import bert
from shardlint.architectures.families.older import labels
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import Extent, Row, Rows, Stage

JINA_RANKS = 512
"""The width that Jina's reranker compares documents in."""


def modernbert(model: Model) -> Rows:
    """ModernBERT: one MLP with a gate, no norm before the first layer."""
    if model.flag("attention_bias") or model.flag("mlp_bias") or model.flag("norm_bias"):
        raise Missing(f"{model.geometry.model_id} has biases, which is not described of ModernBERT")
    hidden, layers, name = model.hidden_size, model.layers, "encoder_layer.layers.#"
    inner, column = model.number("intermediate_size"), Extent(model.number("intermediate_size"), "column")
    heads = Heads(model.heads, model.heads, hidden // model.heads)
    attention, output = grouped_query(model, heads=heads, name=f"{name}.attn", merged="Wqkv", output="Wo")
    weights = (
        _table("embeddings.tok_embeddings", model.vocabulary, hidden),
        _once("embeddings.norm", hidden),
        attention._replace(attention=None),
        output,
        Row(f"{name}.mlp.Wi", (column, column), Extent(hidden), layers=layers),
        Row(f"{name}.mlp.Wo", (Extent(hidden),), Extent(inner, "row"), layers=layers),
        norm(f"{name}.mlp_norm", hidden, layers),
        norm(f"{name}.attn_norm", hidden, layers[1:]),
        _once("final_norm", hidden),
    )
    return Rows(tuple(row for row in weights if row.stage != "layer" or row.layers), (), len(layers))


def nomic(model: Model) -> Rows:
    """Nomic's embedders: BERT with rotary positions, a gate in its MLPs, or experts in every other layer."""
    hidden, layers, name = model.hidden_size, model.layers, "encoder.layers.#"
    inner, qkv_bias = model.odd_number("n_inner", 4 * hidden), model.flag("qkv_proj_bias", default=True)
    period, with_bias = model.odd_number("moe_every_n_layers", 0), model.flag("mlp_fc1_bias", default=True)
    moe = tuple(layer for layer in layers if period and layer % period == 1)
    others = tuple(layer for layer in layers if layer not in frozenset(moe))
    has_gate = model.odd("activation_function", "swiglu") == "swiglu"
    mlp = (
        gated(f"{name}.mlp", hidden, inner, others, bias=with_bias)
        if has_gate
        else plain(f"{name}.mlp", ("up_proj", "down_proj"), hidden, inner, others, bias=with_bias)
    )
    around = _rotary_bert(model, model.odd_number("type_vocab_size", 2), bias=qkv_bias)
    return Rows((*around, *mlp, *_nomic_experts(model, f"{name}.mlp", inner, moe)), (), len(layers))


def _rotary_bert(model: Model, types: int, *, bias: bool) -> tuple[Row, ...]:
    """BERT with rotary positions but for its MLPs; `types` of tokens have embeddings of their own."""
    hidden, layers, name = model.hidden_size, model.layers, "encoder.layers.#"
    heads = Heads(model.heads, model.heads, hidden // model.heads)
    attention, output = grouped_query(
        model, qkv_bias=bias, output_bias=bias, heads=heads, name=f"{name}.attn", output="out_proj"
    )
    return (
        _table("embeddings.word_embeddings", model.vocabulary, hidden),
        *((_table("embeddings.token_type_embeddings", types, hidden),) if types else ()),
        _once("embeddings.LayerNorm", hidden, bias=True),
        attention._replace(attention=None),
        output,
        *(norm(f"{name}.{key}", hidden, layers, bias=True) for key in ("attn_ln", "mlp_ln")),
    )


def gte(model: Model) -> Rows:
    """GTE and Arctic Embed 2: BERT with rotary positions, and a gate in its MLPs that has no bias."""
    layers, inner = model.layers, model.number("intermediate_size")
    merged, down = gated("encoder.layers.#.mlp", model.hidden_size, inner, layers, bias=True)
    around = _rotary_bert(model, model.odd_number("type_vocab_size", 0), bias=True)
    return Rows((*around, merged._replace(bias=False), down), (), len(layers))


def gte_judge(model: Model) -> Rows:
    """GTE as a reranker: its pooler, and one score for each label, both in 32 bits."""
    rows, hidden = gte(model), model.hidden_size
    body = tuple(row._replace(name=f"new.{row.name}") for row in rows.weights)
    pooler = _head("new.pooler.dense", hidden, hidden, "first")
    return rows._replace(weights=(*body, pooler, _head("classifier", labels(model), hidden, "first")))


def _nomic_experts(model: Model, name: str, inner: int, moe: Sequence[int]) -> tuple[Row, ...]:
    """Experts that are cut by their width, and never handed out."""
    if not moe:
        return ()
    hidden, experts = Extent(model.hidden_size), model.number("num_experts")
    number, width = Extent(experts), Extent(inner, "column")
    return (
        Row(f"{name}.w1", (width,), hidden, layers=moe, experts=number, quantisable=False),
        Row(f"{name}.w2", (hidden,), Extent(inner, "row"), layers=moe, experts=number, quantisable=False),
        Row(f"{name}.bias", (hidden,), layers=moe, quantisable=False),
        Row(f"{name}.router", (Extent(experts),), hidden, layers=moe, quantisable=False),
    )


def bge_m3(model: Model) -> Rows:
    """BGE-M3 with its heads for sparse and for many-vector search, in 32 bits."""
    rows, hidden = bert(model), model.hidden_size
    heads = (
        _head("sparse_linear", 1, hidden, "first"),
        _head("colbert_linear", hidden, hidden, "first"),
    )
    return rows._replace(weights=(*rows.weights, *heads))


def qwen2_reward(model: Model) -> Rows:
    """Qwen 2.5's reward models: two layers in 32 bits in place of the output head."""
    rows = dense.qwen2(model)
    body = tuple(row for row in rows.weights if row.name != "lm_head")
    return rows._replace(weights=(*body, *_qwen2_score(model, labels(model))))


def qwen2_one_reward(model: Model) -> Rows:
    """The same with one score whatever the config says."""
    rows = dense.qwen2(model)
    body = tuple(row for row in rows.weights if row.name != "lm_head")
    return rows._replace(weights=(*body, *_qwen2_score(model, 1)))


def _qwen2_score(model: Model, scores: int) -> tuple[Row, Row]:
    hidden = model.hidden_size
    into, out = (
        Row("score.0", (Extent(hidden, "column"),), Extent(hidden), True, stage="each", element_type="float32"),
        Row("score.2", (Extent(scores),), Extent(hidden, "row"), True, stage="each", element_type="float32"),
    )
    return into._replace(quantisable=False), out._replace(quantisable=False)


def internlm2_reward(model: Model) -> Rows:
    """InternLM 2's reward models: one score in 32 bits in place of the output head."""
    rows = classics.internlm2(model)
    body = tuple(row for row in rows.weights if row.name != "output")
    score = Row("v_head", (Extent(1),), Extent(model.hidden_size, "row"), stage="each", element_type="float32")
    return rows._replace(weights=(*body, score._replace(quantisable=False)))


def jina_ranking(model: Model) -> Rows:
    """Jina's reranker on Qwen3: two small layers in place of the output head."""
    rows, hidden = dense.qwen3(model), model.hidden_size
    body = tuple(row for row in rows.weights if row.name != "lm_head")
    head = (
        Row("projector.0", (Extent(JINA_RANKS),), Extent(hidden), stage="each", quantisable=False),
        Row("projector.2", (Extent(JINA_RANKS),), Extent(JINA_RANKS), stage="each", quantisable=False),
    )
    return rows._replace(weights=(*body, *head))


def _head(name: str, outputs: int, hidden: int, stage: Stage) -> Row:
    row = Row(name, (Extent(outputs),), Extent(hidden), True, stage=stage, element_type="float32")
    return row._replace(quantisable=False)


def _table(name: str, count: int, hidden: int) -> Row:
    return Row(name, (Extent(count, "vocabulary"),), Extent(hidden), stage="first", quantisable=False)


def _once(name: str, width: int, *, bias: bool = False) -> Row:
    return Row(name, (Extent(width),), bias=bias, stage="first", quantisable=False)


FAMILIES: Mapping[str, Family] = {
    "BgeM3EmbeddingModel": bge_m3,
    "GteModel": gte,
    "GteNewForSequenceClassification": gte_judge,
    "GteNewModel": gte,
    "InternLM2ForRewardModel": internlm2_reward,
    "JinaForRanking": jina_ranking,
    "ModernBertModel": modernbert,
    "NomicBertModel": nomic,
    "Qwen2ForProcessRewardModel": qwen2_reward,
    "Qwen2ForRewardModel": qwen2_one_reward,
}
"""Architecture class -> family."""
