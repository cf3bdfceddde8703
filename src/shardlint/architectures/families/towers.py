"""Models with a tower: the rows of the tower, and the family of the language model that stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import clip_vit, pixels, plain_mlp, siglip_vit, unused_layers
from shardlint.architectures.families import dense, experts, mla
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.with_tower import Renames, WithTower, deepstack_layers
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows, Tower, Unlike

_LANGUAGE: Renames = (("model.language_model.", "language_model.model."), ("lm_head.", "language_model.lm_head."))
_OLD_LANGUAGE: Renames = (("model.", "language_model.model."),)
QWEN2_VL_NAMES: Renames = (("model.visual.", "visual."), *_LANGUAGE, *_OLD_LANGUAGE)
QWEN3_VL_NAMES: Renames = (("model.visual.", "visual."), *_LANGUAGE)
TOWER_AND_PROJECTOR_NAMES: Renames = (
    ("model.vision_tower.", "vision_tower."),
    ("model.multi_modal_projector.", "multi_modal_projector."),
    *_LANGUAGE,
)
MINIMAX_NAMES: Renames = (
    ("multi_modal_projector.", "vision_tower.multi_modal_projector."),
    ("patch_merge_mlp.", "vision_tower.patch_merge_mlp."),
)
KIMI_NAMES: Renames = (
    ("language_model.layers.", "language_model.model.layers."),
    ("mm_projector.proj.0", "mm_projector.linear_1"),
    ("mm_projector.proj.2", "mm_projector.linear_2"),
)


def qwen2_vl(_: Model, vision: Part) -> tuple[Row, ...]:
    """Qwen2-VL: LayerNorms, and `hidden_size` is the width that the merger puts out."""
    tower, width, depth = Bricks("visual"), vision.number("embed_dim"), vision.number("depth")
    return (
        _patches(tower, vision, width, bias=False),
        *_layer_norms(tower, ("blocks.#.norm1", "blocks.#.norm2"), width, depth),
        *tower.attention(("blocks.#.attn.qkv", "blocks.#.attn.proj"), width, vision.number("num_heads"), depth),
        *plain_mlp(tower, "blocks.#.mlp", ("fc1", "fc2"), width, width * vision.number("mlp_ratio"), depth),
        tower.whole("merger.ln_q", width, bias=True),
        *_merger(tower, "merger", ("mlp.0", "mlp.2"), width, vision.number("hidden_size"), MERGED_PATCHES),
    )


MERGED_PATCHES = 4
"""Patches that vLLM's Qwen2-VL merges into one, whatever the config says."""


def qwen2_5_vl(_: Model, vision: Part) -> tuple[Row, ...]:
    """Qwen2.5-VL, and EXAONE 4.5 whose tower has fewer KV heads: RMS norms and gated MLPs."""
    tower, width, depth = Bricks("visual"), vision.number("hidden_size"), vision.number("depth")
    heads, kv_heads = (
        vision.number("num_heads"),
        vision.odd("num_key_value_heads") and vision.number("num_key_value_heads"),
    )
    attention = ("blocks.#.attn.qkv", "blocks.#.attn.proj")
    return (
        _patches(tower, vision, width, bias=False),
        tower.whole("blocks.#.norm1", width, times=depth),
        tower.whole("blocks.#.norm2", width, times=depth),
        *tower.attention(attention, width, heads, depth, kv_heads=kv_heads),
        *_gated_mlp(tower, "blocks.#.mlp", width, vision.number("intermediate_size"), depth, bias=True),
        tower.whole("merger.ln_q", width),
        *_merger(tower, "merger", ("mlp.0", "mlp.2"), width, vision.number("out_hidden_size"), _merged(vision)),
    )


def qwen3_vl(_: Model, vision: Part) -> tuple[Row, ...]:
    """Qwen3-VL and Qwen3.5: positions are learnt, and each deepstack layer has a merger of its own."""
    tower, width, depth = Bricks("visual"), vision.number("hidden_size"), vision.number("depth")
    deep, output, patches = deepstack_layers(vision), vision.number("out_hidden_size"), _merged(vision)
    names = ("linear_fc1", "linear_fc2")
    rows = (
        _patches(tower, vision, width, bias=True),
        tower.whole("pos_embed", vision.number("num_position_embeddings"), width),
        *_layer_norms(tower, ("blocks.#.norm1", "blocks.#.norm2"), width, depth),
        *tower.attention(("blocks.#.attn.qkv", "blocks.#.attn.proj"), width, vision.number("num_heads"), depth),
        *plain_mlp(tower, "blocks.#.mlp", names, width, vision.number("intermediate_size"), depth),
        tower.whole("merger.norm", width, bias=True),
        *_merger(tower, "merger", names, width, output, patches),
    )
    if not deep:
        return rows
    name = "deepstack_merger_list.#"
    return (
        *rows,
        tower.whole(f"{name}.norm", width * patches, bias=True, times=deep),
        *_merger(tower, name, names, width, output, patches, times=deep),
    )


MERGER = "projection_intermediate_size"
"""The width of the merger's MLP, where it is not that of the others."""


def glm4v(_: Model, vision: Part) -> tuple[Row, ...]:
    """GLM-4.1V and GLM-4.5V: RMS norms, gated MLPs as wide as the output, and a merger that is a gated MLP too."""
    tower, width, depth = Bricks("visual"), vision.number("hidden_size"), vision.number("depth")
    output, side = vision.number("out_hidden_size"), vision.number("image_size") // vision.number("patch_size")
    attention, heads = ("blocks.#.attn.qkv", "blocks.#.attn.proj"), vision.number("num_heads")
    return (
        _patches(tower, vision, width, bias=True),
        tower.whole("embeddings.position_embedding", side * side, width),
        *(tower.whole(f"blocks.#.{name}", width, times=depth) for name in ("norm1", "norm2")),
        *tower.attention(attention, width, heads, depth, bias=False),
        *_gated_mlp(tower, "blocks.#.mlp", width, output, depth, bias=False),
        *(tower.whole(name, width) for name in ("post_conv_layernorm", "post_layernorm")),
        tower.whole("downsample", output, width * _merged(vision), bias=True),
        tower.column("merger.proj", output, output, bias=False),
        tower.whole("merger.post_projection_norm", output, bias=True),
        *_gated_mlp(tower, "merger", output, vision.number(MERGER, vision.number("intermediate_size")), 1, bias=False),
    )


def siglip(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP with Gemma 3's projector: always cut, for vLLM's class knows no encoder data parallelism."""
    width, projector = vision.number("hidden_size"), Bricks("multi_modal_projector", "cut")
    return (
        *siglip_vit(Bricks("vision_tower.vision_model", "cut"), vision, vision.number("num_hidden_layers")),
        projector.whole("mm_input_projection_weight", width, model.hidden_size),
        projector.whole("mm_soft_emb_norm", width),
    )


def pixtral(model: Model, vision: Part) -> tuple[Row, ...]:
    """Pixtral's tower with Mistral 3's projector: always cut, for vLLM's class knows no encoder data parallelism."""
    merged, width = Part(model.geometry, "").number("spatial_merge_size", 2), vision.number("hidden_size")
    projector = Bricks("multi_modal_projector", "cut")
    return (
        *_pixtral_tower(model, vision),
        projector.whole("norm", width),
        projector.whole("patch_merger.merging_layer", width, width * merged**2),
        *two_layer_projector(model, width),
    )


def _pixtral_tower(model: Model, vision: Part) -> tuple[Row, ...]:
    tower, name, depth = Bricks("vision_tower", "cut"), "transformer.layers.#", layers_in_use(model, vision)
    width, attention = vision.number("hidden_size"), (f"{name}.attention.qkv_proj", f"{name}.attention.o_proj")
    return (
        pixels(tower, "patch_conv", vision, width, bias=False),
        tower.whole("ln_pre", width),
        tower.whole(f"{name}.attention_norm", width, times=depth),
        tower.whole(f"{name}.ffn_norm", width, times=depth),
        *tower.attention(attention, width, vision.number("num_attention_heads"), depth, bias=False),
        *_gated_mlp(tower, f"{name}.feed_forward", width, vision.number("intermediate_size"), depth, bias=False),
    )


def two_layer_projector(model: Model, width: int) -> tuple[Row, Row]:
    """Two linear layers into the language model, with a bias where the config or its class says so."""
    projector, hidden = Bricks("multi_modal_projector", "cut"), model.hidden_size
    bias = Part(model.geometry, "").flag("multimodal_projector_bias")
    return (
        projector.column("linear_1", hidden, width, bias=bias),
        projector.row("linear_2", hidden, hidden, bias=bias),
    )


def layers_in_use(model: Model, vision: Part) -> int:
    """Layers of a tower up to the one whose output is taken; counted from the end where negative."""
    depth, taken = vision.number("num_hidden_layers"), Part(model.geometry, "").odd("vision_feature_layer", -1)
    if isinstance(taken, bool) or not isinstance(taken, int) or not -depth <= taken <= depth:
        raise Missing(f"vision_feature_layer of {vision.model_id} is {taken!r}, which is not described")
    return depth + taken + 1 if taken < 0 else taken


def llava(model: Model, vision: Part) -> tuple[Row, ...]:
    """LLaVA's tower, CLIP or Pixtral, as far as its layers are used, and its projector."""
    kind, width = vision.odd("model_type", "clip_vision_model"), vision.number("hidden_size")
    if kind == "pixtral":
        return (*_pixtral_tower(model, vision), *two_layer_projector(model, width))
    if kind != "clip_vision_model":
        raise Missing(f"a tower of the kind {kind} is not described")
    tower = Bricks("vision_tower.vision_model", "cut")
    return (*clip_vit(tower, vision, layers_in_use(model, vision)), *two_layer_projector(model, width))


def unused(model: Model, vision: Part) -> tuple[Unlike, ...]:
    """Layers of a CLIP or SigLIP tower that nobody asks for."""
    if vision.odd("model_type", "clip_vision_model") not in ("clip_vision_model", "siglip_vision_model"):
        return ()
    return unused_layers(vision, layers_in_use(model, vision))


def _llava_text(model: Model) -> Rows:
    """The language model, which the text config's type names."""
    if model.geometry.text_model_type not in ("llama", "mistral"):
        raise Missing(f"LLaVA before a {model.geometry.text_model_type} model is not described")
    return dense.llama(model)


def llama4(model: Model, vision: Part) -> tuple[Row, ...]:
    """Llama 4's tower, which no method of quantisation touches, and its projector, which is always cut."""
    tower, depth = Bricks("vision_model"), vision.number("num_hidden_layers")
    width, inner, heads = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_attention_heads"))
    patch, side = vision.number("patch_size"), vision.number("image_size") // vision.number("patch_size")
    name, output = "model.layers.#", vision.number("vision_output_dim")
    attention = (f"{name}.self_attn.qkv_proj", f"{name}.self_attn.o_proj")
    adapter = (inner, vision.number("projector_input_dim"), vision.number("projector_output_dim"))
    norms = (f"{name}.input_layernorm", f"{name}.post_attention_layernorm")
    rows = (
        tower.whole("class_embedding", width),
        tower.whole("positional_embedding_vlm", side * side + 1, width),
        tower.column("patch_embedding.linear", width, vision.number("num_channels") * patch * patch, bias=False),
        *_layer_norms(tower, ("layernorm_pre", "layernorm_post"), width, 1),
        *_layer_norms(tower, norms, width, depth),
        *tower.attention(attention, width, heads, depth),
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, inner, depth),
        tower.column("vision_adapter.mlp.fc1", adapter[1], adapter[0], bias=False),
        tower.row("vision_adapter.mlp.fc2", adapter[2], adapter[1], bias=False),
        Bricks("multi_modal_projector", "cut").column("linear_1", model.hidden_size, output, bias=False),
    )
    return tuple(row._replace(quantisable=False) for row in rows)


MOONVIT_NAMES = {
    "hidden_size": "vt_hidden_size",
    "intermediate_size": "vt_intermediate_size",
    "num_attention_heads": "vt_num_attention_heads",
    "num_hidden_layers": "vt_num_hidden_layers",
}
"""Standard name -> how Kimi's configs may spell it."""


def moonvit(model: Model, vision: Part) -> tuple[Row, ...]:
    """Kimi's MoonViT: whole on every rank where its heads do not divide; the projector always is."""
    mode: Tower = "by_mode_or_uneven"
    tower, name = Bricks("vision_tower", mode), "encoder.blocks.#"
    width, inner, heads, depth = (vision.number(theirs, vision.odd(key)) for key, theirs in MOONVIT_NAMES.items())
    qkv, bias = vision.number("qkv_hidden_size", width), vision.flag("attn_bias", default=True)
    normed, linear = vision.odd("norm_type", "layernorm") == "layernorm", vision.flag("linear_bias", default=True)
    height, breadth = (vision.number(f"pos_emb_{side}", vision.odd(f"init_pos_emb_{side}", 64)) for side in SIDES)
    attention, norms = (f"{name}.wqkv", f"{name}.wo"), (f"{name}.norm0", f"{name}.norm1")
    rows = (
        pixels(tower, "patch_embed.proj", vision, width, bias=vision.flag("patch_embed_proj_bias", default=True)),
        tower.whole("patch_embed.pos_emb", height * breadth, width),
        *(tower.whole(each, width, bias=normed, times=depth) for each in norms),
        tower.column(f"{name}.mlp.fc0", inner, width, bias=linear, times=depth),
        tower.row(f"{name}.mlp.fc1", width, inner, bias=linear, times=depth),
        *tower.attention(attention, width, heads, depth, bias=bias, width=qkv // heads),
        tower.whole("encoder.final_layernorm", width, bias=normed),
        *_moonvit_projector(Bricks("mm_projector", mode), vision, width, model.hidden_size),
    )
    return tuple(row._replace(quantisable=False) for row in rows)


SIDES = ("height", "width")


def _moonvit_projector(projector: Bricks, vision: Part, width: int, output: int) -> tuple[Row, ...]:
    """Two linear layers: after a LayerNorm and with biases, or in the second version before an RMS norm and without."""
    patches, second = width * _merge_kernel(vision), vision.odd("mm_projector_type", "") == "patchmergerv2"
    return (
        projector.whole("post_norm", output) if second else projector.whole("pre_norm", width, bias=True),
        projector.whole("linear_1", patches, patches, bias=not second),
        projector.whole("linear_2", output, patches, bias=not second),
    )


def minimax_m3(model: Model, vision: Part) -> tuple[Row, ...]:
    """MiniMax-M3's tower: no positions are learnt, and two MLPs of the language model's width follow."""
    tower, after = Bricks("vision_tower.vision_model"), Bricks("vision_tower")
    width, inner, depth = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    name, hidden = "encoder.layers.#", model.hidden_size
    middle, bias = (
        Part(model.geometry, "").number("projector_hidden_size", hidden),
        vision.flag("patch_merge_bias", True),
    )
    side, frames = (_compression(vision, key) for key in ("spatial_merge_size", "temporal_patch_size"))
    patch = vision.number("num_channels", 3) * frames * vision.number("patch_size") ** 2
    heads, attention = (
        vision.number("num_attention_heads"),
        (f"{name}.self_attn.qkv_proj", f"{name}.self_attn.out_proj"),
    )
    projected = vision.flag("multimodal_projector_bias", True)
    return (
        tower.whole("embeddings.patch_embedding", width, patch),
        tower.whole("pre_layrnorm", width, bias=True),
        *_layer_norms(tower, (f"{name}.layer_norm1", f"{name}.layer_norm2"), width, depth),
        *tower.attention(attention, width, heads, depth),
        *plain_mlp(tower, name, ("fc1", "fc2"), width, inner, depth),
        after.column("multi_modal_projector.linear_1", middle, width, bias=projected),
        after.row("multi_modal_projector.linear_2", hidden, middle, bias=projected),
        after.column("patch_merge_mlp.linear_1", middle, hidden * side**2, bias=bias),
        after.row("patch_merge_mlp.linear_2", hidden, middle, bias=bias),
    )


def _compression(vision: Part, key: str) -> int:
    """A number of the part of a tower's config that says how patches become tokens; 2 where it is absent."""
    compression = vision.odd("img_token_compression_config", {})
    value = compression.get(key, 2) if isinstance(compression, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Missing(f"the config of {vision.model_id} does not tell {key} of its {vision.name}")
    return value


def _merge_kernel(vision: Part) -> int:
    """Patches that the projector takes as one."""
    kernel = vision.odd("merge_kernel_size", (2, 2))
    sides = kernel if isinstance(kernel, (list, tuple)) else ()
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise Missing(f"merge_kernel_size of the vision_config of {vision.model_id} is {kernel!r}")
    height, width = sides
    return int(height * width)


def _patches(tower: Bricks, vision: Part, width: int, *, bias: bool) -> Row:
    """The convolution that takes patches of some frames in."""
    taken = vision.number("in_channels", 3) * vision.number("temporal_patch_size") * vision.number("patch_size") ** 2
    return tower.whole("patch_embed.proj", width, taken, bias=bias)


def _layer_norms(tower: Bricks, names: Sequence[str], width: int, depth: int) -> tuple[Row, ...]:
    return tuple(tower.whole(name, width, bias=True, times=depth) for name in names)


def _gated_mlp(tower: Bricks, name: str, width: int, inner: int, depth: int, *, bias: bool) -> tuple[Row, Row]:
    return (
        tower.column(f"{name}.gate_up_proj", inner, width, bias=bias, times=depth, merged=2),
        tower.row(f"{name}.down_proj", width, inner, bias=bias, times=depth),
    )


def _merged(vision: Part) -> int:
    return vision.number("spatial_merge_size") ** 2


def _merger(
    tower: Bricks, name: str, names: tuple[str, str], width: int, output: int, patches: int, times: int = 1
) -> tuple[Row, Row]:
    """Two linear layers that make one token of the language model out of `patches` patches."""
    first, second = names
    inner = width * patches
    return (
        tower.column(f"{name}.{first}", inner, inner, times=times),
        tower.row(f"{name}.{second}", output, inner, times=times),
    )


FAMILIES: Mapping[str, Family] = {
    "Exaone4_5_ForConditionalGeneration": WithTower(dense.exaone4, qwen2_5_vl),
    "Gemma3ForConditionalGeneration": WithTower(dense.gemma3, siglip, TOWER_AND_PROJECTOR_NAMES),
    "Glm4vForConditionalGeneration": WithTower(dense.glm4, glm4v, QWEN3_VL_NAMES),
    "Glm4vMoeForConditionalGeneration": WithTower(experts.glm4_moe, glm4v, QWEN3_VL_NAMES),
    "KimiK25ForConditionalGeneration": WithTower(mla.deepseek, moonvit, KIMI_NAMES),
    "LlavaForConditionalGeneration": WithTower(_llava_text, llava, TOWER_AND_PROJECTOR_NAMES, unused),
    "Llama4ForConditionalGeneration": WithTower(experts.llama4, llama4),
    "MiniMaxM3SparseForCausalLM": experts.minimax_m3,
    "MiniMaxM3SparseForConditionalGeneration": WithTower(experts.minimax_m3, minimax_m3, MINIMAX_NAMES),
    "Mistral3ForConditionalGeneration": WithTower(dense.llama, pixtral, (*TOWER_AND_PROJECTOR_NAMES, *_OLD_LANGUAGE)),
    "Qwen2VLForConditionalGeneration": WithTower(dense.qwen2, qwen2_vl, QWEN2_VL_NAMES),
    "Qwen2_5_VLForConditionalGeneration": WithTower(dense.qwen2, qwen2_5_vl, QWEN2_VL_NAMES),
    "Qwen3VLForConditionalGeneration": WithTower(dense.qwen3, qwen3_vl, QWEN3_VL_NAMES, deepstack=True),
    "Qwen3VLMoeForConditionalGeneration": WithTower(experts.qwen3_moe, qwen3_vl, QWEN3_VL_NAMES, deepstack=True),
}
"""Architecture class -> family."""
