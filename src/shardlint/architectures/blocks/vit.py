"""Vision transformers that many models share: SigLIP and CLIP, always cut but where a class says otherwise."""

from __future__ import annotations

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Unlike

LAYER = "encoder.layers.#"
QUANTISED_MULTIPLE = 64
"""Widths of an MLP that are no multiple of this keep most methods of quantisation away from it."""


def siglip_vit(tower: Bricks, vision: Part, depth: int, *, post_norm: bool = True) -> tuple[Row, ...]:
    """SigLIP: biases everywhere, a learnt position for each patch, and a norm at the end where all layers are used."""
    width, side = vision.number("hidden_size"), vision.number("image_size") // vision.number("patch_size")
    rows = (
        pixels(tower, "embeddings.patch_embedding", vision, width, bias=True),
        tower.whole("embeddings.position_embedding", side * side, width),
        *vit_layers(tower, vision, depth),
    )
    return (*rows, tower.whole("post_layernorm", width, bias=True)) if post_norm else rows


def clip_vit(tower: Bricks, vision: Part, depth: int) -> tuple[Row, ...]:
    """CLIP as far as its layers are used: a class token, and a norm before the layers instead of after them."""
    width, side = vision.number("hidden_size"), vision.number("image_size") // vision.number("patch_size")
    return (
        tower.whole("embeddings.class_embedding", width),
        pixels(tower, "embeddings.patch_embedding", vision, width, bias=False),
        tower.whole("embeddings.position_embedding", side * side + 1, width),
        tower.whole("pre_layrnorm", width, bias=True),
        *vit_layers(tower, vision, depth),
    )


def unused_layers(vision: Part, used: int) -> tuple[Unlike, ...]:
    """What a checkpoint holds of such a transformer behind the last layer whose output is taken, its norm included."""
    width, inner, depth = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    if used >= depth:
        return ()
    layer = 4 * width * (width + 1) + 2 * width * inner + inner + width + 4 * width
    return (Unlike(-(depth - used) * layer - 2 * width, "layers of the tower whose output is not taken are left out"),)


def vit_layers(tower: Bricks, vision: Part, depth: int) -> tuple[Row, ...]:
    """Layers with LayerNorms before attention and MLP, and biases everywhere."""
    width, inner, heads = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_attention_heads"))
    packed = width % QUANTISED_MULTIPLE == 0 and inner % QUANTISED_MULTIPLE == 0
    mlp = plain_mlp(tower, f"{LAYER}.mlp", ("fc1", "fc2"), width, inner, depth)
    return (
        *tower.attention((f"{LAYER}.self_attn.qkv_proj", f"{LAYER}.self_attn.out_proj"), width, heads, depth),
        *(row._replace(quantisable=packed) for row in mlp),
        *(tower.whole(f"{LAYER}.{name}", width, bias=True, times=depth) for name in ("layer_norm1", "layer_norm2")),
    )


def pixels(tower: Bricks, name: str, vision: Part, width: int, *, bias: bool) -> Row:
    """The convolution that takes patches of one image in."""
    return tower.whole(name, width, vision.number("num_channels", 3) * vision.number("patch_size") ** 2, bias=bias)


def plain_mlp(tower: Bricks, name: str, names: tuple[str, str], width: int, inner: int, depth: int) -> tuple[Row, Row]:
    """Two linear layers without a gate, both with a bias."""
    first, second = names
    return (
        tower.column(f"{name}.{first}", inner, width, times=depth),
        tower.row(f"{name}.{second}", width, inner, times=depth),
    )
