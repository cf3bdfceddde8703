"""Qwen4: delta nets and attention by an index between several residual streams, with experts in every layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, grouped_query
from shardlint.architectures.blocks.compressed_index import indexed_attention, indexed_caches
from shardlint.architectures.blocks.ends import EACH_STAGE, ends
from shardlint.architectures.blocks.gated_residual import Streams
from shardlint.architectures.blocks.recurrent import delta_state, gated_delta
from shardlint.architectures.blocks.word_groups import group_embeddings, group_state
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.hybrid import (
    LAYERS,
    delta_heads,
    gated_experts_beside_a_shared_one,
    hybrid,
    others,
    state_element,
)
from shardlint.architectures.families.towers import QWEN3_VL_NAMES, qwen3_vl
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import all_but_each, listed_as
from shardlint.architectures.rows import Demand, Row, Rows, Unlike

SEQUENCE_PARALLEL = Demand(
    "single_stage",
    "with TP, DP and expert parallelism its layers share tokens out among the ranks of TP",
    with_sequence_parallel=True,
)
WORDS = Demand("single_stage", "only the first stage is given the words whose groups have embeddings")
NO_CONTEXT = Demand("no_decode_context_parallel", "its attention picks keys by an index of its own")
RENAMES = (("model.language_model.", "model."),)


def qwen4(model: Model) -> Rows:
    """Qwen4 (Qwen3.8): gated residual streams in place of norms, and mostly gated delta nets."""
    return _qwen4(model, positions=False)


def _with_positions(model: Model) -> Rows:
    """Qwen4 (Qwen3.8) behind a tower: tokens of images have places along three axes."""
    rope = model.part("rope_parameters") or model.part("rope_scaling")
    return _qwen4(model, positions="mrope_section" in rope)


def _qwen4(model: Model, *, positions: bool) -> Rows:
    period = model.odd_number("full_attention_interval", 4)
    recurs = listed_as(model, "layer_types", "linear_attention", all_but_each(model, period))
    attends, net = others(model, recurs), delta_heads(model)
    streams = Streams(model.odd_number("hc_count"), model.odd_number("hc_lowrank"), model.hidden_size)
    with_groups = _layers_with_groups(model)
    indexed = model.odd("indexer_n_heads") is not None
    weights = (
        *gated_delta(f"{LAYERS}.linear_attn", model.hidden_size, net, recurs, in_one_piece=False),
        *_attention(model, attends, indexed=indexed),
        *gated_experts_beside_a_shared_one(model, model.layers),
        *(group_embeddings(model, streams.streams, with_groups) if with_groups else ()),
        *streams.before_a_block(f"{LAYERS}.attn_hyper_connection", model.layers),
        *streams.before_a_block(f"{LAYERS}.mlp_hyper_connection", model.layers),
        *streams.after_the_last("model.hyper_connection_mixer"),
        *_ends(model),
    )
    states = [delta_state(net, recurs, state_element(model, "mamba_ssm_dtype"))]
    if with_groups:
        states.append(group_state(model, streams.streams, with_groups))
    rows = hybrid(model, weights, attends, tuple(states))
    kept = indexed_caches(model, attends, positions=positions) if indexed and attends else rows.caches
    filled = 2 * len(model.layers) * streams.filling * streams.streams * model.hidden_size
    why = "the projections that mix the residual streams are filled up to whole rows of the kernel"
    return rows._replace(
        caches=kept,
        renames=RENAMES,
        unlike_checkpoint=(Unlike(filled, why),) if filled else (),
        demands=(SEQUENCE_PARALLEL, *((NO_CONTEXT,) if indexed else ()), *((WORDS,) if with_groups else ())),
    )


def _layers_with_groups(model: Model) -> tuple[int, ...]:
    """Layers with embeddings of word groups, which the config counts from 1."""
    return tuple(layer - 1 for layer in sorted(set(model.numbers("ple_layer_ids"))) if layer - 1 in model.layers)


def _attention(model: Model, layers: Sequence[int], *, indexed: bool) -> tuple[Row, ...]:
    if not layers:
        return ()
    gated = indexed or model.flag("attn_output_gate", default=True)
    heads = Heads(model.heads, model.kv_heads, model.head_dim, gated)
    if indexed:
        return indexed_attention(model, heads, layers)
    bias = model.flag("qkv_bias")
    return grouped_query(model, qkv_bias=bias, head_norms="per_head", heads=heads, layers=layers)


def _ends(model: Model) -> tuple[Row, ...]:
    """Embedding and output head, neither of which any method packs; the last mixer stands for the final norm."""
    rows = ends(model, stages=EACH_STAGE, tied=False)
    return tuple(row._replace(quantisable=False) for row in rows if row.name != "model.norm")


FAMILIES: Mapping[str, Family] = {
    "Qwen4ExpForCausalLM": qwen4,
    "Qwen4ExpForConditionalGeneration": WithTower(_with_positions, qwen3_vl, QWEN3_VL_NAMES, deepstack=True),
}
"""Architecture class -> family."""
