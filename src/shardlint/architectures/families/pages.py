"""Models that read pages: DeepSeek-OCR and its kin, and dots.ocr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import clip_vit
from shardlint.architectures.families import dense, mla
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Extent, Row

SAM_WIDTH, SAM_LAYERS, SAM_HEADS = 768, 12, 12
SAM_GLOBAL, SAM_WINDOW, SAM_SIDE = 4, 14, 64
"""Layers that see the whole page, patches on each side of what the others see, and of the page."""
NECK, FIRST_NET = 256, 512
PATCH = 3 * 16**2
PIXELS_AROUND = 3 * 3
CLIP: Mapping[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 224,
}
"""What vLLM builds behind SAM in DeepSeek-OCR, whatever the config says."""
DECODER_WIDTH, DECODER_INNER, DECODER_LAYERS, DECODER_KEYS = 896, 4864, 24, 128
"""Qwen2 0.5B as an encoder, which DeepSeek-OCR 2 has instead."""
QUERIES = {"query_768": 144, "query_1024": 256}


def _sam(output: int) -> tuple[Row, ...]:
    """SAM's encoder for pages of 1024 pixels, whole on every rank, and two convolutions that halve what it puts out."""
    tower, name, width, depth = Bricks("sam_model"), "blocks.#", SAM_WIDTH, SAM_LAYERS
    linears = {
        "attn.qkv": (3 * width, width),
        "attn.proj": (width, width),
        "mlp.lin1": (4 * width, width),
        "mlp.lin2": (width, 4 * width),
    }
    head = width // SAM_HEADS
    places = {SAM_GLOBAL: 2 * SAM_SIDE - 1, depth - SAM_GLOBAL: 2 * SAM_WINDOW - 1}
    return (
        tower.whole("pos_embed", SAM_SIDE**2, width),
        tower.whole("patch_embed.proj", width, PATCH, bias=True),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in ("norm1", "norm2")),
        *(tower.whole(f"{name}.{key}", *sizes, bias=True, times=depth) for key, sizes in linears.items()),
        *(
            tower.whole(f"{name}.attn.rel_pos_{side}", count, head, times=layers)
            for layers, count in places.items()
            for side in "hw"
        ),
        tower.whole("neck.0", NECK, width),
        tower.whole("neck.1", NECK, bias=True),
        tower.whole("neck.2", NECK, NECK * PIXELS_AROUND),
        tower.whole("neck.3", NECK, bias=True),
        tower.whole("net_2", FIRST_NET, NECK * PIXELS_AROUND),
        tower.whole("net_3", output, FIRST_NET * PIXELS_AROUND),
    )


def deepseek_ocr(model: Model, _: Part) -> tuple[Row, ...]:
    """DeepSeek-OCR: SAM, CLIP behind it, and one linear layer."""
    clip = Part.of("CLIP", model.geometry.model_id, CLIP)
    tower = Bricks("vision_model", "cut")
    return (
        *_sam(clip.number("hidden_size")),
        *clip_vit(tower, clip, clip.number("num_hidden_layers")),
        *_projector(model),
        *_separators(model, "image_newline", "view_seperator"),
    )


def deepseek_ocr2(model: Model, _: Part) -> tuple[Row, ...]:
    """DeepSeek-OCR 2: SAM, a Qwen2 that reads patches by learnt queries, and one linear layer."""
    tower, width, inner = Bricks("qwen2_model.model.model"), DECODER_WIDTH, DECODER_INNER
    name, depth = "layers.#", DECODER_LAYERS
    biased = {"q_proj": width, "k_proj": DECODER_KEYS, "v_proj": DECODER_KEYS}
    linears = {
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    return (
        *_sam(width),
        *(tower.whole(f"{name}.self_attn.{key}", out, width, bias=True, times=depth) for key, out in biased.items()),
        *(tower.whole(f"{name}.{key}", *sizes, times=depth) for key, sizes in linears.items()),
        *(tower.whole(f"{name}.{key}_layernorm", width, times=depth) for key in ("input", "post_attention")),
        tower.whole("norm", width),
        *(Bricks("qwen2_model").whole(key, count, width) for key, count in QUERIES.items()),
        *_projector(model),
        *_separators(model, "view_seperator"),
    )


def _separators(model: Model, *names: str) -> tuple[Row, ...]:
    """What stands between the views of a page, on every stage."""
    width = (Extent(model.hidden_size),)
    return tuple(Row(name, width, stage="each", quantisable=False, tower="cut") for name in names)


def _projector(model: Model) -> tuple[Row, ...]:
    sizes = Part(model.geometry, "projector_config")
    return (Bricks("projector").whole("layers", sizes.number("n_embed"), sizes.number("input_dim"), bias=True),)


def dots(_: Model, vision: Part) -> tuple[Row, ...]:
    """dots.ocr: RMS norms and gated MLPs, and Qwen2-VL's merger."""
    tower, name, width = Bricks("vision_tower"), "blocks.#", vision.number("embed_dim", 1536)
    inner, depth, bias = vision.number("intermediate_size"), vision.number("num_hidden_layers"), vision.flag("use_bias")
    output, joined = vision.number("hidden_size", 1536), width * vision.number("spatial_merge_size", 2) ** 2
    patch = vision.number("num_channels", 3) * vision.number("patch_size") ** 2
    attention, heads = (f"{name}.attn.qkv", f"{name}.attn.proj"), vision.number("num_attention_heads")
    return (
        tower.whole("patch_embed.patchifier.proj", width, patch, bias=True),
        tower.whole("patch_embed.patchifier.norm", width),
        *tower.attention(attention, width, heads, depth, bias=bias),
        tower.column(f"{name}.mlp.fc13", inner, width, bias=bias, times=depth, merged=2),
        tower.row(f"{name}.mlp.fc2", width, inner, bias=bias, times=depth),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in ("norm1", "norm2")),
        *((tower.whole("post_trunk_norm", width),) if vision.flag("post_norm", default=True) else ()),
        tower.whole("merger.ln_q", width, bias=True),
        tower.column("merger.mlp.0", joined, joined),
        tower.row("merger.mlp.2", output, joined),
    )


FAMILIES: Mapping[str, Family] = {
    "DeepseekOCR2ForCausalLM": WithTower(mla.deepseek, deepseek_ocr2),
    "DeepseekOCRForCausalLM": WithTower(mla.deepseek, deepseek_ocr),
    "UnlimitedOCRForCausalLM": WithTower(mla.deepseek, deepseek_ocr),
    "DotsOCRForCausalLM": WithTower(dense.qwen2, dots),
}
"""Architecture class -> family."""
