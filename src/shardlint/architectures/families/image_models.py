"""Models that see with SigLIP, CLIP or InternViT, before a language model of any kind."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import clip_vit, pixels, plain_mlp, siglip_vit
from shardlint.architectures.families import dense, mla
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.languages import language
from shardlint.architectures.families.relatives import cohere2
from shardlint.architectures.families.towers import (
    KIMI_NAMES,
    TOWER_AND_PROJECTOR_NAMES,
    glm4v,
    layers_in_use,
    moonvit,
    two_layer_projector,
    unused,
)
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

VISION_MODEL = "vision_tower.vision_model"
PROJECTOR = "multi_modal_projector"


def paligemma(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP, and one linear layer into the language model."""
    tower, projected = Bricks(VISION_MODEL, "cut"), vision.number("projection_dim", model.hidden_size)
    return (
        *siglip_vit(tower, vision, vision.number("num_hidden_layers")),
        Bricks(PROJECTOR, "cut").whole("linear", projected, vision.number("hidden_size"), bias=True),
    )


def llava_next(model: Model, vision: Part) -> tuple[Row, ...]:
    """LLaVA-NeXT: CLIP or SigLIP as far as its layers are used, and a token for the end of a line."""
    return (*_lines_of_patches(model, vision), *two_layer_projector(model, vision.number("hidden_size")))


def llava_onevision(model: Model, vision: Part) -> tuple[Row, ...]:
    """LLaVA-OneVision: LLaVA-NeXT with a projector that every rank holds whole."""
    projector, bias = Bricks(PROJECTOR, "cut"), Part(model.geometry, "").flag("multimodal_projector_bias")
    return (
        *_lines_of_patches(model, vision),
        projector.whole("linear_1", model.hidden_size, vision.number("hidden_size"), bias=bias),
        projector.whole("linear_2", model.hidden_size, model.hidden_size, bias=bias),
    )


def _lines_of_patches(model: Model, vision: Part) -> tuple[Row, ...]:
    kind, depth = vision.odd("model_type", "clip_vision_model"), layers_in_use(model, vision)
    tower = Bricks(VISION_MODEL, "cut")
    newline = Bricks("image_newline", "cut").whole("weight", model.hidden_size)._replace(stage="each")
    if kind == "clip_vision_model":
        return (newline, *clip_vit(tower, vision, depth))
    if kind == "siglip_vision_model":
        return (newline, *siglip_vit(tower, vision, depth, post_norm=False))
    raise Missing(f"a tower of the kind {kind} is not described")


def idefics3(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP, whose patches are joined by `scale_factor` on each side before one linear layer."""
    tower, factor = Bricks("model.vision_model", "cut"), Part(model.geometry, "").number("scale_factor", 2)
    joined = vision.number("hidden_size") * factor**2
    return (
        *siglip_vit(tower, vision, vision.number("num_hidden_layers")),
        Bricks("model.connector", "cut").whole("modality_projection.proj", model.hidden_size, joined),
    )


def cohere2_vision(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP, and a gated projector from patches that are joined by `downsample_factor` on each side."""
    whole, projector = Part(model.geometry, ""), Bricks(PROJECTOR, "cut")
    joined = vision.number("hidden_size") * whole.number("downsample_factor", 2) ** 2
    inner = whole.number("alignment_intermediate_size")
    return (
        *siglip_vit(Bricks(VISION_MODEL, "cut"), vision, vision.number("num_hidden_layers")),
        projector.column("linear_1", inner // 2, joined, merged=2),
        projector.row("linear_2", model.hidden_size, inner // 2),
    )


def paddleocr(model: Model, vision: Part) -> tuple[Row, ...]:
    """SigLIP with a projector of two linear layers that every rank holds whole."""
    tower, after, width = Bricks("visual.vision_model", "cut"), Bricks("mlp_AR", "cut"), vision.number("hidden_size")
    joined = width * vision.number("spatial_merge_size", 2) ** 2
    return (
        *siglip_vit(tower, vision, vision.number("num_hidden_layers")),
        after.whole("pre_norm", width, bias=True),
        after.whole("linear_1", joined, joined, bias=True),
        after.whole("linear_2", model.hidden_size, joined, bias=True),
    )


def intern_vit(model: Model, vision: Part) -> tuple[Row, ...]:
    """InternViT: its attention is whole where its heads do not divide, its MLPs are not; the projector always is."""
    whole = Part(model.geometry, "")
    uneven, tower, name = Bricks("vision_model", "by_mode_or_uneven"), Bricks("vision_model"), "encoder.layers.#"
    width, inner, heads = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_attention_heads"))
    depth, side = _layers_selected(whole, vision), vision.number("image_size") // vision.number("patch_size")
    merged, output = uneven.attention((f"{name}.attn.qkv", f"{name}.attn.proj"), width, heads, depth)
    with_bias = vision.odd("norm_type", "rms_norm") == "layer_norm"
    norms = ("attn.q_norm", "attn.k_norm") if vision.flag("qk_normalization") else ()
    rows = (
        tower.whole("embeddings.class_embedding", width),
        tower.whole("embeddings.position_embedding", side * side + 1, width),
        pixels(tower, "embeddings.patch_embedding", vision, width, bias=True),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in ("ls1", "ls2", *norms)),
        *(tower.whole(f"{name}.{key}", width, bias=with_bias, times=depth) for key in ("norm1", "norm2")),
        merged._replace(bias=vision.flag("qkv_bias")),
        output,
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, inner, depth),
    )
    return (*rows, *_joined_projector(Bricks("mlp1"), width * _joined(whole), model.hidden_size))


def _joined_projector(projector: Bricks, joined: int, hidden: int) -> tuple[Row, ...]:
    return (
        projector.whole("0", joined, bias=True),
        projector.whole("1", hidden, joined, bias=True),
        projector.whole("3", hidden, hidden, bias=True),
    )


def _layers_selected(whole: Part, vision: Part) -> int:
    """Layers of the tower up to `select_layer`, counted from the end where that is negative."""
    depth, taken = vision.number("num_hidden_layers"), whole.odd("select_layer", -1)
    if isinstance(taken, bool) or not isinstance(taken, int) or not -depth <= taken < depth:
        raise Missing(f"select_layer of {vision.model_id} is {taken!r}, which is not described")
    return depth + taken + 1 if taken < 0 else taken + 1


def _joined(whole: Part) -> int:
    """Patches that are joined into one."""
    ratio = whole.odd("downsample_ratio", 0.5)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0.01 < ratio <= 1:
        raise Missing(f"downsample_ratio of {whole.model_id} is {ratio!r}")
    return int(1 / ratio) ** 2


def internvl(model: Model, vision: Part) -> tuple[Row, ...]:
    """InternVL as Transformers has it: the attention of its tower is whole on every rank, its MLPs are cut."""
    tower, name, whole = Bricks("vision_tower", "cut"), "encoder.layer.#", Part(model.geometry, "")
    width, inner, depth = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    patch, side = _square(vision, "patch_size"), _square(vision, "image_size")
    linears = ("q_proj", "k_proj", "v_proj")
    norms = ("attention.q_norm", "attention.k_norm") if vision.flag("use_qk_norm") else ()
    with_bias, qkv_bias = vision.odd("norm_type", "layer_norm") == "layer_norm", vision.flag("attention_bias")
    rows = (
        tower.whole("embeddings.cls_token", width),
        *((tower.whole("embeddings.mask_token", width),) if vision.flag("use_mask_token") else ()),
        tower.whole("embeddings.position_embeddings", (side // patch) ** 2 + 1, width),
        tower.whole("embeddings.patch_embeddings.projection", width, 3 * patch**2, bias=True),
        *(tower.whole(f"{name}.attention.{key}", width, width, bias=qkv_bias, times=depth) for key in linears),
        tower.whole(f"{name}.attention.projection_layer", width, width, bias=True, times=depth),
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, inner, depth),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in ("lambda_1", "lambda_2", *norms)),
        *(
            tower.whole(f"{name}.{key}", width, bias=with_bias, times=depth)
            for key in ("layernorm_before", "layernorm_after")
        ),
    )
    if not vision.flag("use_mean_pooling", default=True):
        rows = (*rows, tower.whole("layernorm", width, bias=True))
    projector, joined = Bricks(PROJECTOR, "cut"), width * _joined(whole)
    return (
        *rows,
        projector.whole("layer_norm", joined, bias=True),
        projector.whole("linear_1", model.hidden_size, joined, bias=True),
        projector.whole("linear_2", model.hidden_size, model.hidden_size, bias=True),
    )


def _square(vision: Part, key: str) -> int:
    """A length that stands once or once for each side."""
    value = vision.odd(key)
    if isinstance(value, (list, tuple)) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Missing(f"{key} of the {vision.name} of {vision.model_id} is {value!r}, not one length")
    return value


def kimi_vl(model: Model, vision: Part) -> tuple[Row, ...]:
    """Kimi's MoonViT before a DeepSeek model."""
    rows = moonvit(model, vision)
    return tuple(row._replace(name=row.name.replace("mm_projector.", f"{PROJECTOR}.")) for row in rows)


def glm_ocr(model: Model, vision: Part) -> tuple[Row, ...]:
    """GLM-OCR: GLM-4V's tower with norms on its heads and biases, and without learnt positions."""
    width, depth = vision.number("hidden_size"), vision.number("depth")
    inner, heads = vision.number("intermediate_size"), vision.number("num_heads")
    bias, tower = vision.flag("attention_bias", default=True), Bricks("visual")
    skipped = ("embeddings.position_embedding", "post_conv_layernorm", "blocks.#.mlp.gate_up_proj")
    kept = (row for row in glm4v(model, vision) if not row.name.endswith((*skipped, "blocks.#.mlp.down_proj")))
    return (
        *(row._replace(bias=bias) if ".attn." in row.name else row for row in kept),
        *(tower.whole(f"blocks.#.attn.{key}", width // heads, times=depth) for key in ("q_norm", "k_norm")),
        tower.column("blocks.#.mlp.gate_up_proj", inner, width, bias=bias, times=depth, merged=2),
        tower.row("blocks.#.mlp.down_proj", width, inner, bias=bias, times=depth),
    )


PHI3V_CLIP = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 23,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 336,
}
"""CLIP ViT-L/14 at 336 pixels, which vLLM builds for Phi-3-vision whatever the config says, less its last layer."""
PHI3V_PATCHES = 4
"""Patches that Phi-3-vision joins into one."""


def phi3v(model: Model) -> Rows:
    """Phi-3-vision: CLIP, two linear layers behind it, and the embedding of words a second time."""
    name = "vision_embed_tokens"
    clip, projection = Bricks(f"{name}.img_processor.vision_model", "cut"), Bricks(name, "cut")
    joined = PHI3V_PATCHES * PHI3V_CLIP["hidden_size"]
    rows, hidden = dense.phi3(model), model.hidden_size
    language_model = tuple(row._replace(name=f"language_model.{row.name}") for row in rows.weights)
    (words,) = (row for row in language_model if row.name.endswith("embed_tokens"))
    tower = (
        *clip_vit(clip, Part.of("CLIP", model.geometry.model_id, PHI3V_CLIP), PHI3V_CLIP["num_hidden_layers"]),
        projection.whole("glb_GN", joined),
        projection.whole("sub_GN", joined),
        projection.whole("img_projection.0", hidden, joined, bias=True),
        projection.whole("img_projection.2", hidden, hidden, bias=True),
    )
    second = words._replace(name="embed_tokens", stage="first")
    return rows._replace(weights=(*tower, second, *language_model))


SIGLIP_NAMES = TOWER_AND_PROJECTOR_NAMES

FAMILIES: Mapping[str, Family] = {
    "Cohere2VisionForConditionalGeneration": WithTower(cohere2, cohere2_vision, SIGLIP_NAMES),
    "GlmOcrForConditionalGeneration": WithTower(dense.glm4, glm_ocr),
    "Idefics3ForConditionalGeneration": WithTower(language, idefics3),
    "InternVLChatModel": WithTower(language, intern_vit),
    "InternVLForConditionalGeneration": WithTower(language, internvl, SIGLIP_NAMES),
    "KimiVLForConditionalGeneration": WithTower(mla.deepseek, kimi_vl, KIMI_NAMES),
    "LlavaNextForConditionalGeneration": WithTower(language, llava_next, SIGLIP_NAMES, unused),
    "LlavaOnevisionForConditionalGeneration": WithTower(language, llava_onevision, SIGLIP_NAMES, unused),
    "PaddleOCRVLForConditionalGeneration": WithTower(dense.llama, paddleocr),
    "PaliGemmaForConditionalGeneration": WithTower(language, paligemma, SIGLIP_NAMES),
    "Phi3VForCausalLM": phi3v,
    "SmolVLMForConditionalGeneration": WithTower(language, idefics3),
}
"""Architecture class -> family."""
