"""Models with towers that are none of the common ones."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import caches, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import AROUND_THE_BLOCKS, layer_norms
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import pixels, vit_layers
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.gemma4 import NAMES, gemma4, gemma4_vision
from shardlint.architectures.families.hybrid import qwen3_5
from shardlint.architectures.families.languages import language
from shardlint.architectures.families.towers import TOWER_AND_PROJECTOR_NAMES
from shardlint.architectures.families.with_tower import WithTower
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


def gemma4_unified(model: Model, vision: Part) -> tuple[Row, ...]:
    """Gemma 4 without an encoder: pixels and sounds go in by one linear layer each, which every stage builds."""
    embedder, width = Bricks("vision_embedder", "cut"), vision.number("mm_embed_dim", 3840)
    side = vision.number("patch_size", 16) * vision.number("pooling_kernel_size", 3)
    patch, places = 3 * side**2, vision.number("mm_posemb_size", 1120)
    audio, hidden = Part(model.geometry, "audio_config"), model.hidden_size
    hears = model.geometry.raw.get("audio_config") is not None
    sounds = Bricks("embed_audio").whole("embedding_projection", hidden, audio.number("audio_embed_dim", 640))
    rows = (
        embedder.whole("pos_embedding", 2 * places, width),
        embedder.whole("patch_ln1", patch, bias=True),
        embedder.column("patch_dense", width, patch),
        *(embedder.whole(key, width, bias=True) for key in ("patch_ln2", "pos_norm")),
        Bricks("embed_vision").whole("embedding_projection", hidden, vision.number("output_proj_dims", width)),
        *((sounds,) if hears else ()),
    )
    return tuple(row._replace(stage="each") for row in rows)


def diffusion_gemma(model: Model) -> Rows:
    """DiffusionGemma: Gemma 4 that is told its own last guess by one more MLP."""
    vision, rows, hidden = Part(model.geometry, "vision_config"), gemma4(model), model.hidden_size
    inner = Part(model.geometry, "").odd("self_conditioning_size") or model.number("intermediate_size")
    guess = Bricks("self_conditioning", "none")
    beside = (
        guess.whole("pre_norm", hidden),
        guess.whole("gate_proj", inner, hidden),
        guess.whole("up_proj", inner, hidden),
        guess.whole("down_proj", hidden, inner),
    )
    weights = (*gemma4_vision(model, vision), *rows.weights, *(row._replace(stage="each") for row in beside))
    return rows._replace(weights=weights)


def lfm2_vl(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP 2, whose patches come as rows of numbers, and two whole linear layers behind joined patches."""
    tower, width = Bricks("vision_tower.vision_model"), vision.number("hidden_size")
    whole, joined = Part(model.geometry, ""), width * Part(model.geometry, "").number("downsample_factor", 2) ** 2
    projector, inner = Bricks("multi_modal_projector"), whole.number("projector_hidden_size")
    patch = vision.number("num_channels", 3) * vision.number("patch_size") ** 2
    bias, normed = whole.flag("projector_bias", default=True), whole.flag("projector_use_layernorm", default=True)
    return (
        tower.whole("embeddings.patch_embedding", width, patch, bias=True),
        tower.whole("embeddings.position_embedding", vision.number("num_patches"), width),
        *vit_layers(tower, vision, vision.number("num_hidden_layers")),
        tower.whole("post_layernorm", width, bias=True),
        *((projector.whole("layer_norm", joined, bias=True),) if normed else ()),
        projector.whole("linear_1", inner, joined, bias=bias),
        projector.whole("linear_2", model.hidden_size, inner, bias=bias),
    )


def minicpm_v4_6(model: Model, vision: Part) -> tuple[Row, ...]:
    """MiniCPM-V 4.6: SigLIP with a merger in its midst, and another behind it."""
    tower, middle, width = Bricks("vpm"), Bricks("vit_merger"), vision.number("hidden_size")
    whole, inner, joined = Part(model.geometry, ""), 4 * vision.number("intermediate_size"), 4 * width
    side, depth = vision.number("image_size") // vision.number("patch_size"), vision.number("num_hidden_layers")
    depth -= whole.flag("drop_vision_last_layer")
    last, times = Bricks("merger.mlp.#"), whole.number("merger_times", 1)
    heads = vision.number("num_attention_heads")
    return (
        pixels(tower, "embeddings.patch_embedding", vision, width, bias=True),
        tower.whole("embeddings.position_embedding", side * side, width),
        *vit_layers(tower, vision, depth),
        tower.whole("post_layernorm", width, bias=True),
        *middle.attention(("self_attn.qkv_proj", "self_attn.out_proj"), width, heads, 1),
        middle.whole("layer_norm1", width, bias=True),
        middle.whole("pre_norm", joined, bias=True),
        middle.whole("linear_1", inner, joined, bias=True),
        middle.whole("linear_2", width, inner, bias=True),
        *(last.whole(key, joined, bias=True, times=times) for key in ("pre_norm",)),
        last.whole("linear_1", joined, joined, bias=True, times=times),
        *((last.whole("linear_2", width, joined, bias=True, times=times - 1),) if times > 1 else ()),
        last.whole("linear_2", model.hidden_size, joined, bias=True),
    )


FAMILIES: Mapping[str, Family] = {
    "DiffusionGemmaForBlockDiffusion": diffusion_gemma,
    "Gemma4UnifiedForConditionalGeneration": WithTower(gemma4, gemma4_unified, NAMES),
    "Lfm2VlForConditionalGeneration": WithTower(language, lfm2_vl, TOWER_AND_PROJECTOR_NAMES),
    "MiniCPMV4_6ForConditionalGeneration": WithTower(qwen3_5, minicpm_v4_6),
    "MuseGlimmerForCausalLM": muse_glimmer,
    "MuseGlimmerForConditionalGeneration": muse_glimmer,
}
"""Architecture class -> family."""
