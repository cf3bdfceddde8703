"""Models that hear with Whisper's encoder, before a language model."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.blocks.vit import plain_mlp
from shardlint.architectures.families import dense
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.languages import language
from shardlint.architectures.families.with_tower import LANGUAGE_MODEL
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

KERNEL = 3
POSITIONS = 1500
"""Positions of Whisper's encoder where the config does not tell another number."""


def whole_whisper(audio: Part) -> tuple[Row, ...]:
    """Whisper's encoder as Transformers builds it: whole on every rank."""
    tower, name, depth = Bricks("audio_tower", "cut"), "layers.#", audio.number("encoder_layers", _layers(audio))
    width, inner = audio.number("d_model", _width(audio)), audio.number("encoder_ffn_dim", _inner(audio))
    attention = {"q_proj": True, "k_proj": False, "v_proj": True, "out_proj": True}
    norms = ("self_attn_layer_norm", "final_layer_norm")
    return (
        tower.whole("conv1", width, audio.number("num_mel_bins", 128) * KERNEL, bias=True),
        tower.whole("conv2", width, width * KERNEL, bias=True),
        tower.whole("embed_positions", audio.number("max_source_positions", POSITIONS), width),
        *(tower.whole(f"{name}.self_attn.{key}", width, width, bias=b, times=depth) for key, b in attention.items()),
        tower.whole(f"{name}.fc1", inner, width, bias=True, times=depth),
        tower.whole(f"{name}.fc2", width, inner, bias=True, times=depth),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in norms),
        tower.whole("layer_norm", width, bias=True),
    )


def _width(audio: Part) -> int | None:
    value = audio.odd("hidden_size")
    return value if isinstance(value, int) else None


def _inner(audio: Part) -> int | None:
    value = audio.odd("intermediate_size")
    return value if isinstance(value, int) else None


def _layers(audio: Part) -> int | None:
    value = audio.odd("num_hidden_layers")
    return value if isinstance(value, int) else None


def qwen2_audio(model: Model) -> Rows:
    """Qwen2-Audio: Whisper's encoder and one linear layer."""
    audio = _audio(model)
    width = audio.number("d_model")
    projector = Bricks("multi_modal_projector", "cut").whole("linear", model.hidden_size, width, bias=True)
    return _beside(language(model), (*whole_whisper(audio), projector))


def audio_flamingo(model: Model) -> Rows:
    """Audio Flamingo 3: Whisper's encoder and two linear layers."""
    audio, hidden, projector = _audio(model), model.hidden_size, Bricks("multi_modal_projector", "cut")
    width = audio.number("d_model", _width(audio))
    rows = (
        *whole_whisper(audio),
        projector.whole("linear_1", hidden, width, bias=True),
        projector.whole("linear_2", hidden, hidden, bias=True),
    )
    return _beside(dense.qwen2(model), rows)


VOXTRAL_FRAMES = 4
"""Frames that Voxtral joins into one where the config does not tell another number."""


def voxtral(model: Model) -> Rows:
    """Voxtral: Whisper's encoder, cut as its heads are, and two linear layers behind joined frames."""
    audio, tower, adapter = _audio(model), Bricks("whisper_encoder.whisper_encoder", "cut"), Bricks("", "cut")
    width, inner, depth = (audio.number(key) for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    name, joined = "layers.#", width * audio.number("downsample_factor", VOXTRAL_FRAMES)
    attention = (f"{name}.self_attn.qkv_proj", f"{name}.self_attn.out_proj")
    norms = ("self_attn_layer_norm", "final_layer_norm")
    positions = tower.whole("embed_positions", audio.number("max_source_positions", POSITIONS), width)
    rows = (
        tower.whole("conv1", width, audio.number("num_mel_bins", 128) * KERNEL, bias=True),
        tower.whole("conv2", width, width * KERNEL, bias=True),
        positions._replace(element_type="float32"),
        *tower.attention(attention, width, audio.number("num_attention_heads"), depth),
        *plain_mlp(tower, f"{name}.mlp", ("fc1", "fc2"), width, inner, depth),
        *(tower.whole(f"{name}.{key}", width, bias=True, times=depth) for key in norms),
        tower.whole("layer_norm", width, bias=True),
        adapter.whole("audio_language_adapter.w_in", model.hidden_size, joined),
        adapter.whole("audio_language_adapter.w_out", model.hidden_size, model.hidden_size),
    )
    return _beside(language(model), rows)


def _audio(model: Model) -> Part:
    audio = Part(model.geometry, "audio_config")
    if not audio.is_known:
        raise Missing(f"the config of {model.geometry.model_id} does not tell audio_config")
    return audio


def _beside(rows: Rows, tower: tuple[Row, ...]) -> Rows:
    text = (row._replace(name=LANGUAGE_MODEL + row.name) for row in rows.weights)
    return rows._replace(weights=(*tower, *text))


FAMILIES: Mapping[str, Family] = {
    "AudioFlamingo3ForConditionalGeneration": audio_flamingo,
    "Qwen2AudioForConditionalGeneration": qwen2_audio,
    "VoxtralForConditionalGeneration": voxtral,
}
"""Architecture class -> family."""
