"""Models with towers that are none of the common ones."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import caches, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import AROUND_THE_BLOCKS, layer_norms
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.model import Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import listed_as_sliding
from shardlint.architectures.rows import Extent, Row, Rows


def muse_glimmer(model: Model) -> Rows:
    """Muse Glimmer: a gate as wide as the attention, norms of heads without weights, and a tower cut by its heads."""
    hidden, layers = model.hidden_size, model.layers
    gates = (Extent(model.heads, "query_head", model.head_dim),)
    weights = (
        *_muse_tower(model),
        *grouped_query(model),
        Row("model.layers.#.self_attn.output_gate_proj", gates, Extent(hidden), layers=layers),
        *gated(MLP, hidden, model.number("intermediate_size"), layers),
        *layer_norms(AROUND_THE_BLOCKS, hidden, layers),
        *ends(model, on_every_stage=True, tied=False),
    )
    renames = (("model.language_model.", "model."),)
    return Rows(weights, caches(model, listed_as_sliding(model, ())), len(layers), renames=renames)


def _muse_tower(model: Model) -> tuple[Row, ...]:
    vision, whole = Part(model.geometry, "vision_config"), Part(model.geometry, "")
    if not vision.is_known:
        return ()
    tower, adapter, name = Bricks("vision_encoder", "by_mode_or_uneven"), Bricks("vision_adapter"), "transformer.#"
    width, inner, depth = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    places = vision.number("pos_emb_height", 32) * vision.number("pos_emb_width", 32)
    pixels = vision.number("patch_temporal", 2) * 3 * vision.number("patch_size") ** 2
    merged, projected = whole.number("out_hidden_size", 4 * width), whole.number("projector_hidden_size", 4096)
    attention = (f"{name}.attn.qkv_proj", f"{name}.attn.o_proj")
    heads = tower.attention(attention, width, vision.number("num_attention_heads"), depth)
    return (
        tower.whole("positional_embedding_vlm", places, width),
        tower.whole("conv1_linear", width, pixels),
        *(tower.whole(key, width, bias=True) for key in ("ln_pre", "ln_post")),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in ("ln_1", "ln_2")),
        *(row._replace(quantisable=False) for row in heads),
        tower.whole(f"{name}.mlp.c_fc", inner, width, bias=True, times=depth),
        tower.whole(f"{name}.mlp.c_proj", width, inner, bias=True, times=depth),
        adapter.whole("c_fc", projected, merged),
        adapter.whole("c_proj", projected, projected),
        adapter.whole("vision_projection", model.hidden_size, projected),
    )


FAMILIES: Mapping[str, Family] = {
    "MuseGlimmerForCausalLM": muse_glimmer,
    "MuseGlimmerForConditionalGeneration": muse_glimmer,
}
"""Architecture class -> family."""
