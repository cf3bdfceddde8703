"""Gemma 3n: last layers that share the caches of earlier ones, embeddings for every layer, and residual streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import AROUND_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.small_gemma import (
    attention_of_shared_caches,
    caches_of_own,
    embeddings_for_layers,
    layers_with_caches,
)
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import all_but_each, listed_as_sliding
from shardlint.architectures.rows import Extent, Row, Rows, Unlike

LAYER = "model.layers.#"
DECODER = "model.self_decoder"
LAYERS_TO_A_FULL_ONE = 5
MOBILENET_PARAMETERS = {"mobilenetv5_300m_enc": 294_126_912}
"""Parameters of the towers that timm builds by a name, whatever the rest of the config says."""
NAMES = (("model.language_model.", "language_model.model."), ("model.", ""))


def gemma3n(model: Model) -> Rows:
    """The language model: `altup_num_inputs` residual streams, a low-rank path beside the attention."""
    hidden, layers, own = model.hidden_size, model.layers, layers_with_caches(model)
    sliding = listed_as_sliding(model, all_but_each(model, LAYERS_TO_A_FULL_ONE))
    rank, streams = model.odd_number("laurel_rank"), model.odd_number("altup_num_inputs")
    weights = (
        *attention_of_shared_caches(model, own, layers[len(own) :]),
        *gated(MLP, hidden, _width(model), layers),
        Row(f"{LAYER}.laurel.linear_left", (Extent(rank, "column"),), Extent(hidden), layers=layers),
        Row(f"{LAYER}.laurel.linear_right", (Extent(hidden),), Extent(rank, "row"), layers=layers),
        norm(f"{LAYER}.laurel.post_laurel_norm", hidden, layers),
        *_streams(model, streams),
        *layer_norms(AROUND_THE_BLOCKS, hidden, layers),
        *embeddings_for_layers(model, DECODER),
        *_in_decoder(ends(model, tied=True)),
    )
    kept = caches_of_own(model, own, sliding)
    return Rows(weights, kept, len(layers), unlike_checkpoint=_unused_keys(model, len(layers) - len(own)))


def _unused_keys(model: Model, sharing: int) -> tuple[Unlike, ...]:
    """Keys and values of layers that read the caches of others: the checkpoint has them, and nobody uses them."""
    of_one = model.head_dim * (2 * model.kv_heads * model.hidden_size + 1)
    why = "keys and values of layers that share the cache of another are left out"
    return (Unlike(-sharing * of_one, why),) if sharing else ()


def _streams(model: Model, streams: int) -> Iterator[Row]:
    """How the residual streams are predicted, corrected, made and joined."""
    hidden, layers, name = model.hidden_size, model.layers, f"{LAYER}.altup"
    if streams < 2:
        raise Missing(f"altup_num_inputs of {model.geometry.model_id} is {streams}")
    square = {"correction_coefs": streams, "prediction_coefs": streams**2}
    if model.flag("altup_correct_scale", default=True):
        yield norm(f"{name}.correct_output_scale", hidden, layers)._replace(element_type="float32")
    for key, outputs in square.items():
        yield Row(f"{name}.{key}", (Extent(outputs),), Extent(streams), layers=layers, quantisable=False)
    yield Row(f"{name}.modality_router", (Extent(streams),), Extent(hidden), layers=layers, quantisable=False)
    yield norm(f"{name}.router_norm", hidden, layers)
    for key in (f"{DECODER}.altup_projections", "model.altup_unembed_projections"):
        yield Row(key, (Extent(hidden, "column"),), Extent(hidden), stage="each", times=streams - 1)


def _in_decoder(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row._replace(name=row.name.replace("model.embed", f"{DECODER}.embed"), stage="each") for row in rows)


def _width(model: Model) -> int:
    """The width of the MLPs, which stands once or once for each layer."""
    listed = model.odd("intermediate_size")
    widths = set(listed) if isinstance(listed, list) and all(isinstance(one, int) for one in listed) else set()
    if not widths:
        return model.number("intermediate_size")
    if len(widths) > 1 or min(widths) < 1:
        raise Missing(f"{model.geometry.model_id} has MLPs of several widths, which is not described")
    return int(widths.pop())


def gemma3n_towers(model: Model, vision: Part) -> tuple[Row, ...]:
    """MobileNet for images and a conformer for sounds, neither of which a rank cuts, and what follows them."""
    kind, hidden = str(vision.odd("architecture", "")), model.hidden_size
    if kind not in MOBILENET_PARAMETERS:
        raise Missing(f"the tower {kind or 'without a name'} of {model.geometry.model_id} is not described")
    rows = (
        Bricks("vision_tower").whole("timm_model", MOBILENET_PARAMETERS[kind]),
        *_embedder("embed_vision", vision, hidden),
    )
    audio = Part(model.geometry, "audio_config")
    return (*rows, *_conformer(audio), *_embedder("embed_audio", audio, hidden)) if audio.is_known else rows


def _embedder(name: str, part: Part, hidden: int) -> tuple[Row, ...]:
    """Tokens of a kind of their own, and the way into the language model."""
    bricks, width = Bricks(name, "cut"), part.number("hidden_size")
    table = bricks.whole("embedding", part.number("vocab_size"), width)
    words = table._replace(outs=(Extent(table.outs[0].count, "vocabulary"),))
    return (
        words,
        bricks.whole("hard_embedding_norm", width),
        bricks.whole("soft_embedding_norm", width),
        bricks.row("embedding_projection", hidden, width, bias=False),
    )


def _conformer(audio: Part) -> tuple[Row, ...]:
    tower, name, depth = Bricks("audio_tower"), "conformer.#", audio.number("conf_num_hidden_layers")
    width, heads = audio.number("hidden_size"), audio.number("conf_num_attention_heads")
    kernel = audio.number("conf_conv_kernel_size")
    channels = two_numbers(audio, "sscp_conv_channel_size")
    linears = {
        "attention.attn.relative_position_embedding.pos_proj": (width, width),
        "attention.attn.q_proj": (width, width),
        "attention.attn.k_proj": (width, width),
        "attention.attn.v_proj": (width, width),
        "attention.post": (width, width),
        "lconv1d.linear_start": (2 * width, width),
        "lconv1d.depthwise_conv1d": (width, kernel),
        "lconv1d.linear_end": (width, width),
        "ffw_layer_start.ffw_layer_1": (4 * width, width),
        "ffw_layer_start.ffw_layer_2": (width, 4 * width),
        "ffw_layer_end.ffw_layer_1": (4 * width, width),
        "ffw_layer_end.ffw_layer_2": (width, 4 * width),
    }
    norms = (
        "attention.pre_attn_norm",
        "attention.post_norm",
        "lconv1d.pre_layer_norm",
        "lconv1d.conv_norm",
        "ffw_layer_start.pre_layer_norm",
        "ffw_layer_start.post_layer_norm",
        "ffw_layer_end.pre_layer_norm",
        "ffw_layer_end.post_layer_norm",
        "norm",
    )
    return (
        *convolutions(tower, ("conv_0", "conv_1"), channels, width, audio.number("input_feat_size")),
        *(tower.whole(f"{name}.{key}", *sizes, times=depth) for key, sizes in linears.items()),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in norms),
        tower.whole(f"{name}.attention.attn.per_dim_scale", width // heads, times=depth),
    )


CONVOLUTION = 9
"""Inputs of a convolution of 3 x 3."""
HALVED_TWICE = 4
"""Each of the two convolutions halves the frequencies."""


def convolutions(
    tower: Bricks, names: tuple[str, str], channels: tuple[int, int], width: int, bands: int
) -> tuple[Row, ...]:
    """The two convolutions that a sound enters by, and the layer behind them."""
    (one, two), (first, second), name = names, channels, "subsample_conv_projection"
    return (
        tower.whole(f"{name}.{one}.conv", first, CONVOLUTION),
        tower.whole(f"{name}.{one}.norm", first),
        tower.whole(f"{name}.{two}.conv", second, first * CONVOLUTION),
        tower.whole(f"{name}.{two}.norm", second),
        tower.whole(f"{name}.input_proj_linear", width, second * (bands // HALVED_TWICE)),
    )


def two_numbers(part: Part, key: str) -> tuple[int, int]:
    """A value that is a pair of whole numbers."""
    value = part.odd(key)
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(isinstance(v, int) and v > 0 for v in value):
        raise Missing(f"{key} of {part.model_id} is {value!r}, not two whole numbers")
    return value[0], value[1]


FAMILIES: Mapping[str, Family] = {
    "Gemma3nForCausalLM": gemma3n,
    "Gemma3nForConditionalGeneration": WithTower(gemma3n, gemma3n_towers, NAMES),
}
"""Architecture class -> family."""
