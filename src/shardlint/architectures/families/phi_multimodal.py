"""Phi-4-multimodal: SigLIP for images and a conformer for sounds, before a language model like Phi-4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import siglip_vit
from shardlint.architectures.families import dense
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

SIGLIP = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "image_size": 448,
    "patch_size": 14,
}
"""The tower that vLLM builds, whatever the config says."""
TAKEN = 26
"""Its layers up to the one whose output is taken; always cut, for the class knows no encoder data parallelism."""
KERNEL = 3
SOUND = Bricks("embed_tokens_extend", "cut")


def phi4_multimodal(model: Model) -> Rows:
    """Phi-4-multimodal: Phi-4, SigLIP as far as its layers are used, and a conformer that every rank holds whole."""
    rows, audio = dense.phi3(model), _conformer_config(model)
    weights = (*_images(model), *_conformer(audio), *_projections(model, audio.number("attention_dim")), *rows.weights)
    return rows._replace(weights=weights)


def _images(model: Model) -> tuple[Row, ...]:
    tower, after = Bricks("vision_encoder.img_processor", "cut"), Bricks("vision_encoder", "cut")
    width, hidden = SIGLIP["hidden_size"], model.hidden_size
    return (
        *siglip_vit(tower, Part.of("SigLIP", model.geometry.model_id, SIGLIP), TAKEN, post_norm=False),
        after.whole("glb_GN", width),
        after.whole("sub_GN", width),
        after.whole("img_projection.0", hidden, width, bias=True),
        after.whole("img_projection.2", hidden, hidden, bias=True),
    )


def _projections(model: Model, width: int) -> Iterator[Row]:
    """Two linear layers for sounds alone, and two for those beside images."""
    layer = model.part("embd_layer").get("audio_embd_layer")
    options: Mapping[str, Any] = layer if isinstance(layer, Mapping) else {}
    odd = options.get("use_qformer") or options.get("use_conv_downsample") or options.get("downsample_rate", 1) != 1
    if odd or options.get("projection_cls") != "mlp":
        raise Missing(f"the projector of sounds of {model.geometry.model_id} is not described")
    for name in ("audio_projection", "audio_projection_for_vision"):
        yield SOUND.whole(f"{name}.0", model.hidden_size, width, bias=True)
        yield SOUND.whole(f"{name}.2", model.hidden_size, model.hidden_size, bias=True)


def _conformer_config(model: Model) -> Part:
    processor = model.part("audio_processor")
    config = processor.get("config")
    if processor.get("name") != "cascades" or not isinstance(config, Mapping):
        raise Missing(f"the audio_processor of {model.geometry.model_id} is not described")
    return Part.of("audio_processor", model.geometry.model_id, config)


def _conformer(audio: Part) -> Iterator[Row]:
    width, depth, name = audio.number("attention_dim"), audio.number("num_blocks"), "encoder.encoders.#"
    inner, bias = audio.number("linear_units"), audio.flag("bias_in_glu", default=True)
    yield from _convolutions(audio, width)
    for half in ("feed_forward_in", "feed_forward_out"):
        yield SOUND.whole(f"{name}.{half}.layer_norm", width, bias=True, times=depth)
        yield SOUND.whole(f"{name}.{half}.net.0.linear", 2 * inner, width, bias=bias, times=depth)
        yield SOUND.whole(f"{name}.{half}.net.2", width, inner, bias=True, times=depth)
    for part in ("q", "k", "v", "out"):
        yield SOUND.whole(f"{name}.self_attn.linear_{part}", width, width, bias=True, times=depth)
    for norm in ("layer_norm_att", "layer_norm"):
        yield SOUND.whole(f"{name}.{norm}", width, bias=True, times=depth)
    yield from _convolution_of_a_block(audio, f"{name}.conv", width, depth)


def _convolution_of_a_block(audio: Part, name: str, width: int, depth: int) -> Iterator[Row]:
    """A gated convolution over single tokens and one over `kernel_size`, each channel of that for itself."""
    gates, separate = audio.number("ext_pw_out_channel"), audio.number("depthwise_seperable_out_channel")
    inputs, channels = width * audio.number("ext_pw_kernel_size", 1), width * audio.number("depthwise_multiplier", 1)
    if audio.flag("batch_norm") or audio.flag("linear_glu_in_convm") or audio.number("attention_group_size", 1) != 1:
        raise Missing(f"the conformer of {audio.model_id} is not described")
    yield SOUND.whole(f"{name}.layer_norm", width, bias=True, times=depth)
    yield SOUND.whole(f"{name}.ext_pw_conv_1d", gates, inputs, bias=True, times=depth)
    yield SOUND.whole(f"{name}.glu.ext_pw_conv_1d", 2 * gates, inputs, bias=True, times=depth)
    if audio.flag("bias_in_glu", default=True):
        yield SOUND.whole(f"{name}.glu.biases", 2 * gates, times=depth)
    if gates != width:
        yield SOUND.whole(f"{name}.ln1", width, gates, bias=True, times=depth)
    kernel = audio.number("kernel_size", KERNEL)
    yield SOUND.whole(f"{name}.dw_sep_conv_1d.dw_conv", channels, kernel, bias=True, times=depth)
    yield SOUND.whole(f"{name}.dw_sep_conv_1d.pw_conv", separate, channels, bias=True, times=depth)
    if separate != width:
        yield SOUND.whole(f"{name}.ln2", width, separate, bias=True, times=depth)


def _convolutions(audio: Part, width: int) -> Iterator[Row]:
    """What a sound enters by: convolutions that halve it until it is `time_reduction` times shorter, and positions."""
    bands, reduction = audio.number("input_size"), audio.number("time_reduction")
    settings, relative = audio.odd("nemo_conv_settings", {}), audio.odd("relative_attention_bias_args", {})
    plain = audio.odd("input_layer") == "nemo_conv" and isinstance(settings, Mapping) and isinstance(relative, Mapping)
    if not plain or reduction & (reduction - 1) or settings.keys() - {"conv_channels"} or relative.get("type") != "t5":
        raise Missing(f"the way in of the conformer of {audio.model_id} is not described")
    channels = Part.of("conformer", audio.model_id, settings).number("conv_channels", 256)
    positions = Part.of("conformer", audio.model_id, relative)
    halvings, name = reduction.bit_length() - 1, "encoder.embed"
    yield SOUND.whole(f"{name}.conv.0", channels, KERNEL**2, bias=True)
    if halvings > 1:
        yield SOUND.whole(f"{name}.conv.depthwise", channels, KERNEL**2, bias=True, times=halvings - 1)
        yield SOUND.whole(f"{name}.conv.pointwise", channels, channels, bias=True, times=halvings - 1)
    for _ in range(halvings):
        bands = -(-bands // 2)
    yield SOUND.whole(f"{name}.out", width, channels * bands, bias=True)
    buckets = positions.number("t5_bias_max_distance", 1000) * (1 if positions.flag("t5_bias_symmetric") else 2)
    heads = audio.number("attention_heads")
    yield SOUND.whole("encoder.relative_attention_bias_layer.bias_values", buckets, heads)
    yield SOUND.whole("encoder.encoder_embedding.mean_and_deviation", 2 * audio.number("input_size"))


FAMILIES: Mapping[str, Family] = {
    "Phi4MMForCausalLM": phi4_multimodal,
}
"""Architecture class -> family."""
