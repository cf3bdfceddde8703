"""InternVL: InternViT before a language model of another family, which the config names."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families import dense, experts, relatives
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

LANGUAGE_MODELS: Mapping[str, Family] = {
    "InternLM2ForCausalLM": relatives.internlm2,
    "LlamaForCausalLM": dense.llama,
    "Qwen2ForCausalLM": dense.qwen2,
    "Qwen3ForCausalLM": dense.qwen3,
    "Qwen3MoeForCausalLM": experts.qwen3_moe,
}
"""Architecture class of the language model -> family."""
IMAGE_CHANNELS = 3


def _text(model: Model) -> Rows:
    named = model.odd("architectures")
    first = named[0] if isinstance(named, list) and named else None
    family = LANGUAGE_MODELS.get(first) if isinstance(first, str) else None
    if family is None:
        raise Missing(f"InternVL before a language model of the class {first} is not described")
    return family(model)


def intern_vit(model: Model, vision: Part) -> tuple[Row, ...]:
    """InternViT: where its heads do not divide, its attention is whole on every rank, and its MLPs are cut as ever."""
    tower, heads = Bricks("vision_model"), vision.number("num_attention_heads")
    attention, name = Bricks("vision_model", "by_mode_or_uneven"), "encoder.layers.#"
    width, inner, depth = (
        vision.number("hidden_size"),
        vision.number("intermediate_size"),
        _layers_in_use(model, vision),
    )
    patch, with_bias = vision.number("patch_size"), vision.odd("norm_type", "layer_norm") == "layer_norm"
    side, names = vision.number("image_size") // patch, (f"{name}.attn.qkv", f"{name}.attn.proj")
    merged, output = attention.attention(names, width, heads, depth, bias=vision.flag("qkv_bias"))
    head_norms = ("q_norm", "k_norm") if vision.flag("qk_normalization") else ()
    return (
        tower.whole("embeddings.class_embedding", width),
        tower.whole("embeddings.patch_embedding", width, IMAGE_CHANNELS * patch**2, bias=True),
        tower.whole("embeddings.position_embedding", side * side + 1, width),
        merged,
        output._replace(bias=True),
        *(tower.whole(f"{name}.attn.{key}", width, times=depth) for key in head_norms),
        tower.column(f"{name}.mlp.fc1", inner, width, times=depth),
        tower.row(f"{name}.mlp.fc2", width, inner, times=depth),
        *(tower.whole(f"{name}.{key}", width, bias=with_bias, times=depth) for key in ("norm1", "norm2")),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in ("ls1", "ls2")),
        *_projector(model, width),
    )


def _projector(model: Model, width: int) -> tuple[Row, ...]:
    """A norm and two linear layers, whole on every rank, over as many patches as become one token."""
    ratio, mlp, hidden = model.geometry.raw.get("downsample_ratio", 0.5), Bricks("mlp1"), model.hidden_size
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio <= 1:
        raise Missing(f"downsample_ratio of {model.geometry.model_id} is {ratio!r}")
    taken = width * int(1 / ratio) ** 2
    return (
        mlp.whole("0", taken, bias=True),
        mlp.whole("1", hidden, taken, bias=True),
        mlp.whole("3", hidden, hidden, bias=True),
    )


def _layers_in_use(model: Model, vision: Part) -> int:
    """Layers up to the one whose output is taken; counted from the end where negative, from 0 where not."""
    depth, taken = vision.number("num_hidden_layers"), model.geometry.raw.get("select_layer", -1)
    if isinstance(taken, bool) or not isinstance(taken, int) or not -depth <= taken < depth:
        raise Missing(f"select_layer of {vision.model_id} is {taken!r}")
    return depth + taken + 1 if taken < 0 else taken + 1


FAMILIES: Mapping[str, Family] = {"InternVLChatModel": WithTower(_text, intern_vit)}
"""Architecture class -> family."""
