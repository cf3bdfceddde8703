"""Models that see through a resampler: ERNIE 4.5 VL and MiniCPM-V; and Step 3.7's tower with convolutions behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.experts import gated_experts, router, shared_experts
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import pixels, plain_mlp, vit_layers
from shardlint.architectures.families import dense
from shardlint.architectures.families.decoders import MLP, Family, dense_beside, sparse
from shardlint.architectures.families.mixtures import step3p5
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import MOST_LAYERS, Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import each, listed_as
from shardlint.architectures.rows import Extent, Row, Rows


def ernie_vl(model: Model) -> Rows:
    """ERNIE 4.5 VL: one mixture for words and one for images in each sparse layer, which share an expert."""
    moe, hidden, experts = _ernie_layers(model), model.hidden_size, model.number("num_experts")
    widths = model.numbers("moe_intermediate_size")
    if len(widths) != len(ERNIE_KINDS):
        raise Missing(f"the config of {model.geometry.model_id} does not tell both widths of moe_intermediate_size")
    shared = widths[0] * model.odd_number("moe_num_shared_experts", 0)
    mixtures = (
        row
        for kind, width in zip(ERNIE_KINDS, widths, strict=True)
        for row in (
            router(f"{MLP}.{kind}_experts_gate", experts, hidden, moe, element_type="float32"),
            *gated_experts(
                f"{MLP}.{kind}_experts",
                experts,
                hidden,
                width,
                moe,
                renormalised=True,
                one_a_rank=True,
                balanceable=False,
            ),
        )
    )
    scores, bias = (Extent(len(ERNIE_KINDS) * experts),), model.flag("use_bias")
    rows = (
        Row(f"{MLP}.e_score_correction_bias", scores, layers=moe, element_type="float32", quantisable=False),
        *mixtures,
        *shared_experts(f"{MLP}.shared_experts", hidden, shared, moe),
        *dense_beside(model, moe, bias=bias),
    )
    decoder = sparse(model, grouped_query(model, qkv_bias=bias), rows, ends_on_every_stage=False)
    return decoder._replace(ties_on_one_stage=model.tied_embeddings)


ERNIE_KINDS = ("text", "vision")


def _ernie_layers(model: Model) -> Sequence[int]:
    """The sparse layers, whose range is told for each mixture, and is the same for both."""
    if model.odd("mlp_layer_types") is not None:
        return listed_as(model, "mlp_layer_types", "sparse")
    ranges = []
    for key, otherwise in (("moe_layer_start_index", 0), ("moe_layer_end_index", MOST_LAYERS)):
        told = set(model.numbers(key)) or {model.odd_number(key, otherwise)}
        if len(told) > 1:
            raise Missing(f"{key} of {model.geometry.model_id} differs for words and images, which is not described")
        ranges.append(told.pop())
    first, last = ranges
    return tuple(layer for layer in each(model, model.odd_number("moe_layer_interval", 1)) if first <= layer <= last)


def ernie_tower(model: Model, vision: Part) -> tuple[Row, ...]:
    """A transformer with LayerNorms and biases, and a resampler that joins patches of space and then of time."""
    tower, name, whole = Bricks("vision_model"), "blocks.#", Part(model.geometry, "")
    width, depth = vision.number("embed_dim", vision.number("hidden_size")), vision.number("depth")
    inner = _inner(vision, width)
    patch, side = (
        vision.number("in_channels", 3) * vision.number("patch_size") ** 2,
        whole.number("spatial_conv_size", 2),
    )
    resampler, joined = Bricks("resampler_model", "cut"), whole.number("pixel_hidden_size", width) * side**2
    in_time = {"temporal_linear1": joined * whole.number("temporal_conv_size", 2), "temporal_linear2": joined}
    linears = {"spatial_linear1": joined, "spatial_linear2": joined}
    norms = ["spatial_norm"]
    if whole.flag("use_temporal_conv", default=True):
        linears |= in_time
        norms.append("temporal_norm")
    return (
        tower.whole("patch_embed.proj", width, patch),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in ("norm1", "norm2")),
        *tower.attention((f"{name}.attn.qkv", f"{name}.attn.proj"), width, vision.number("num_heads"), depth),
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, inner, depth),
        tower.whole("ln", width, bias=True),
        *(resampler.column(key, joined, inputs) for key, inputs in linears.items()),
        *(resampler.whole(key, joined, bias=True) for key in norms),
        resampler.column("mlp", model.hidden_size, joined),
        resampler.whole("after_norm", model.hidden_size),
    )


MINICPM_V: Mapping[str, Family] = {"2.5": dense.llama, "2.6": dense.qwen2, "4.0": dense.llama, "4.5": dense.qwen3}
"""Version -> the language model behind the tower."""


def minicpm_v(model: Model) -> Rows:
    """MiniCPM-V 2.5 to 4.5: SigLIP less its last layer, and a resampler with learnt queries."""
    version = str(Part(model.geometry, "").odd("version", ""))
    if version not in MINICPM_V:
        raise Missing(f"version {version or 'that nothing names'} of MiniCPM-V is not described")
    rows = MINICPM_V[version](model)
    vision, whole = Part(model.geometry, "vision_config"), Part(model.geometry, "")
    tower, resampler, hidden = Bricks("vpm"), Bricks("resampler"), model.hidden_size
    width, side = vision.number("hidden_size"), vision.number("image_size") // vision.number("patch_size")
    depth = vision.number("num_hidden_layers") - whole.flag("drop_vision_last_layer", default=True)
    seen = (
        pixels(tower, "embeddings.patch_embedding", vision, width, bias=True),
        tower.whole("embeddings.position_embedding", side * side, width),
        *vit_layers(tower, vision, depth),
        tower.whole("post_layernorm", width, bias=True),
        resampler.whole("query", whole.number("query_num"), hidden),
        resampler.whole("kv_proj", hidden, width, quantisable=True),
        resampler.whole("attn.in_proj", 3 * hidden, hidden, bias=True),
        resampler.whole("attn.out_proj", hidden, hidden, bias=True),
        *(resampler.whole(key, hidden, bias=True) for key in ("ln_q", "ln_kv", "ln_post")),
        resampler.whole("proj", hidden, hidden),
    )
    text = (row._replace(name=f"llm.{row.name}") for row in rows.weights)
    return rows._replace(weights=(*seen, *text))


PERCEPTION: Mapping[str, tuple[str, ...]] = {
    "width": ("width", "hidden_size"),
    "layers": ("layers", "num_hidden_layers"),
    "heads": ("heads", "num_attention_heads"),
}
"""What Step's config calls a number of the tower, and what Transformers' class does."""


def step3p7(model: Model, vision: Part) -> tuple[Row, ...]:
    """Perception encoder: a scale behind each block, and two convolutions that halve what it puts out."""
    tower, name = Bricks("vision_model"), "transformer.resblocks.#"
    width, depth, heads = (_first(vision, names) for names in PERCEPTION.values())
    side, classes = vision.number("image_size") // vision.number("patch_size"), vision.flag("use_cls_token")
    ends = [key for key, otherwise in (("ln_pre", True), ("ln_post", False)) if vision.flag(f"use_{key}", otherwise)]
    scaled = vision.odd("ls_init_value", vision.odd("layer_scale_init_value")) is not None
    scales = [tower.whole(f"{name}.{key}.gamma", width, times=depth) for key in ("ls_1", "ls_2")] if scaled else []
    bias = Part(model.geometry, "").flag("projector_bias")
    return (
        pixels(tower, "conv1", vision, width, bias=False),
        *((tower.whole("class_embedding", width),) if classes else ()),
        *((_positions(tower, side, width, classes=classes),) if vision.flag("use_abs_posemb", default=True) else ()),
        *(tower.whole(key, width, bias=True) for key in ends),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in ("ln_1", "ln_2")),
        *scales,
        *tower.attention((f"{name}.attn.qkv_proj", f"{name}.attn.out_proj"), width, heads, depth),
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, _inner(vision, width), depth),
        tower.whole("vit_downsampler1", 2 * width, width * 9, bias=True),
        tower.whole("vit_downsampler2", 4 * width, 2 * width * 9, bias=True),
        tower.column("vit_large_projector", model.hidden_size, 4 * width, bias=bias)._replace(
            name="vit_large_projector"
        ),
    )


def _inner(vision: Part, width: int) -> int:
    """The width of the tower's MLPs, which some configs tell as a multiple of its own."""
    ratio = vision.odd("mlp_ratio")
    if ratio is None:
        return vision.number("intermediate_size")
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio < MOST_TIMES:
        raise Missing(f"the config of {vision.model_id} does not tell mlp_ratio of its {vision.name}")
    return int(width * ratio)


MOST_TIMES = 1000
"""More than any MLP is wider than its model."""


def _positions(tower: Bricks, side: int, width: int, *, classes: bool) -> Row:
    return tower.whole("positional_embedding", side * side + classes, width)


def _first(vision: Part, names: tuple[str, ...]) -> int:
    return vision.number(next((name for name in names if vision.odd(name) is not None), names[0]))


FAMILIES: Mapping[str, Family] = {
    "Ernie4_5_VLMoeForConditionalGeneration": WithTower(ernie_vl, ernie_tower),
    "MiniCPMV": minicpm_v,
    "Step3p7ForConditionalGeneration": WithTower(step3p5, step3p7),
}
"""Architecture class -> family."""
