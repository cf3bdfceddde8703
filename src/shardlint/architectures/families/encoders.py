"""Encoders that keep no cache, and Whisper, whose decoder reads what its encoder made of a sound."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import Heads, grouped_query
from shardlint.architectures.blocks.mlp import plain
from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.older import labels
from shardlint.architectures.model import MOST_LAYERS, Missing, Model
from shardlint.architectures.rows import CacheRow, Extent, Row, Rows, Unlike


def bert(model: Model) -> Rows:
    """BERT and RoBERTa as embedding models: even positions and token types are cut like a vocabulary."""
    if model.odd("position_embedding_type", "absolute") != "absolute":
        raise Missing(f"{model.geometry.model_id} has no absolute positions, which is not described")
    hidden, layers, name = model.hidden_size, model.layers, "model.encoder.layer.#"
    tables = {
        "word": model.vocabulary,
        "position": model.number("max_position_embeddings"),
        "token_type": model.odd_number("type_vocab_size", 2),
    }
    attention, output = grouped_query(
        model, qkv_bias=True, output_bias=True, name=f"{name}.attention", merged="self.qkv_proj", output="output.dense"
    )
    inner = ("intermediate.dense", "output.dense")
    weights = (
        *(_table(f"model.embeddings.{key}_embeddings", count, hidden) for key, count in tables.items()),
        _norm_once("model.embeddings.LayerNorm", hidden),
        attention._replace(attention=None),
        output,
        *plain(name, inner, hidden, model.number("intermediate_size"), layers),
        norm(f"{name}.attention.output.LayerNorm", hidden, layers, bias=True),
        norm(f"{name}.output.LayerNorm", hidden, layers, bias=True),
    )
    pooler = Unlike(-hidden * (hidden + 1), "the pooler, which embeddings do not need, is left out")
    return Rows(weights, (), len(layers), unlike_checkpoint=(pooler,))


def bert_judge(model: Model) -> Rows:
    """BERT as a reranker: its pooler, and one score for each label, both in 32 bits."""
    heads = {"bert.pooler.dense": model.hidden_size, "classifier": labels(model)}
    return _with_heads(model, "bert.", heads)


def roberta_judge(model: Model) -> Rows:
    """RoBERTa as a reranker (bge-reranker): two linear layers in 32 bits."""
    heads = {"classifier.dense": model.hidden_size, "classifier.out_proj": labels(model)}
    return _with_heads(model, "roberta.", heads)


def _with_heads(model: Model, name: str, heads: Mapping[str, int]) -> Rows:
    rows, hidden = bert(model), Extent(model.hidden_size)
    body = (row._replace(name=name + row.name.removeprefix("model.")) for row in rows.weights)
    head = (
        Row(key, (Extent(outputs),), hidden, True, stage="first", element_type="float32", quantisable=False)
        for key, outputs in heads.items()
    )
    return rows._replace(weights=(*body, *head), unlike_checkpoint=())


def _table(name: str, count: int, hidden: int) -> Row:
    return Row(name, (Extent(count, "vocabulary"),), Extent(hidden), stage="first", quantisable=False)


def _norm_once(name: str, width: int) -> Row:
    return Row(name, (Extent(width),), bias=True, stage="first", quantisable=False)


def whisper(model: Model) -> Rows:
    """Whisper: the encoder is cut as the decoder is, and the vocabulary lies whole on every rank."""
    hidden, depth, name = model.hidden_size, _depth(model, "decoder_layers"), "model.decoder.layers.#"
    layers, heads = range(depth), _decoder_heads(model)
    keys, inputs = Extent(heads.keys, "kv_head", heads.width), Extent(hidden)
    decoder = (
        *grouped_query(
            model,
            qkv_bias=True,
            output_bias=True,
            heads=heads,
            layers=layers,
            name=f"{name}.self_attn",
            output="out_proj",
        ),
        Row(f"{name}.encoder_attn.q_proj", (Extent(heads.queries, "query_head", heads.width),), inputs, True, layers),
        Row(f"{name}.encoder_attn.kv_proj", (keys, keys), inputs, True, layers),
        Row(f"{name}.encoder_attn.out_proj", (inputs,), Extent(hidden, "row"), True, layers),
        *plain(f"{name}.mlp", ("fc1", "fc2"), hidden, model.odd_number("decoder_ffn_dim"), layers),
        *(
            norm(f"{name}.{key}_layer_norm", hidden, layers, bias=True)
            for key in ("self_attn", "encoder_attn", "final")
        ),
    )
    ends = (
        _whole("embed_tokens", model.vocabulary, hidden),
        _whole("embed_positions", model.odd_number("max_target_positions"), hidden),
        _norm_once("model.decoder.layer_norm", hidden),
    )
    sounds = model.odd_number("max_source_positions")
    kept = CacheRow(layers, Extent(heads.keys, "kv_head"), 2 * heads.width)
    return Rows((*_whisper_encoder(model), *ends, *decoder), (kept, kept._replace(kind="cross", window=sounds)), depth)


def _decoder_heads(model: Model) -> Heads:
    heads = _heads(model, "decoder_attention_heads")
    return Heads(heads, heads, model.hidden_size // heads)


def _heads(model: Model, key: str) -> int:
    heads = model.odd_number(key)
    if not heads:
        raise Missing(f"{key} of {model.geometry.model_id} is 0")
    return heads


def _depth(model: Model, key: str) -> int:
    depth = model.odd_number(key)
    if depth > MOST_LAYERS:
        raise Missing(f"{key} is {depth}, more than any model has")
    return depth


def _whole(name: str, count: int, width: int) -> Row:
    return Row(f"model.decoder.{name}", (Extent(count),), Extent(width), stage="first", quantisable=False)


def _whisper_encoder(model: Model) -> tuple[Row, ...]:
    hidden, depth, name = model.hidden_size, _depth(model, "encoder_layers"), "layers.#"
    encoder, inner = Bricks("model.encoder", "cut"), model.odd_number("encoder_ffn_dim")
    names, norms = (
        (f"{name}.self_attn.qkv_proj", f"{name}.self_attn.out_proj"),
        ("self_attn_layer_norm", "final_layer_norm"),
    )
    kernel = 3
    return (
        encoder.whole("conv1", hidden, model.odd_number("num_mel_bins") * kernel, bias=True),
        encoder.whole("conv2", hidden, hidden * kernel, bias=True),
        encoder.whole("embed_positions", model.odd_number("max_source_positions"), hidden),
        *encoder.attention(names, hidden, _heads(model, "encoder_attention_heads"), depth),
        encoder.column(f"{name}.mlp.fc1", inner, hidden, times=depth),
        encoder.row(f"{name}.mlp.fc2", hidden, inner, times=depth),
        *(encoder.whole(f"{name}.{key}", hidden, bias=True, times=depth) for key in norms),
        encoder.whole("layer_norm", hidden, bias=True),
    )


FAMILIES: Mapping[str, Family] = {
    "BertForSequenceClassification": bert_judge,
    "BertModel": bert,
    "RobertaForSequenceClassification": roberta_judge,
    "RobertaModel": bert,
    "WhisperForConditionalGeneration": whisper,
    "XLMRobertaForSequenceClassification": roberta_judge,
    "XLMRobertaModel": bert,
}
"""Architecture class -> family."""
